"""Who may read the metrics on the host's address: a client whose token the API server allows ``GET
/metrics``."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.process.metrics import PATH

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ALLOWED_SECONDS = 60.0
REFUSED_SECONDS = 10.0
"""For which a decision of the API server is remembered."""
MAX_REMEMBERED = 64
MAX_REVIEWS = 2
"""At the API server at a time: clients with invented tokens cost it no more."""
REVIEW_SECONDS = 5.0
MAX_TOKEN = 16 * 1024

Reviewer = Callable[[str], Awaitable[HTTPStatus]]
"""Reviews a token. Returns OK, UNAUTHORIZED, FORBIDDEN, or SERVICE_UNAVAILABLE where the API server does not
respond."""


def reviewer(credentials: Credentials) -> Reviewer:
    """Returns a reviewer that asks the API server of ``credentials`` with the client's token, and so needs no
    right of its own."""

    async def reviewed(token: str) -> HTTPStatus:
        body = {"spec": {"nonResourceAttributes": {"path": PATH, "verb": "get"}}}
        request = ApiRequest(method="POST", path=REVIEWS, body=body, timeout=REVIEW_SECONDS)
        try:
            async with KubeClient(credentials.of_bearer(token), connections=1) as client:
                review = await client.send(request)
        except ApiError as error:
            if error.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
                return HTTPStatus(error.status)
            return HTTPStatus.SERVICE_UNAVAILABLE
        except UnreachableError:
            return HTTPStatus.SERVICE_UNAVAILABLE
        status = review.get("status") or {}
        return HTTPStatus.OK if status.get("allowed") is True else HTTPStatus.FORBIDDEN

    return reviewed


@dataclass(slots=True)
class MetricsAccess:
    """Remembers decisions for a while, with digests of the tokens. ``clock`` is in steady seconds."""

    review: Reviewer
    clock: Callable[[], float] = time.monotonic
    _known: dict[bytes, tuple[HTTPStatus, float]] = field(default_factory=dict, init=False)
    """Digest of a token -> the decision, and until when it is valid. Oldest first."""
    _reviews: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_REVIEWS), init=False)

    async def status(self, authorization: str) -> HTTPStatus:
        """Returns OK where the client may read the metrics; ``authorization`` is the header of that name."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not _is_token(token):
            return HTTPStatus.UNAUTHORIZED
        digest = hashlib.sha256(token.encode()).digest()
        if (known := self._remembered(digest)) is not None:
            return known
        async with self._reviews:
            return self._remembered(digest) or await self._review(digest, token)

    def _remembered(self, digest: bytes) -> HTTPStatus | None:
        status, until = self._known.get(digest, (None, 0.0))
        return status if self.clock() < until else None

    async def _review(self, digest: bytes, token: str) -> HTTPStatus:
        status = await self.review(token)
        self._known.pop(digest, None)
        if status is not HTTPStatus.SERVICE_UNAVAILABLE:
            seconds = ALLOWED_SECONDS if status is HTTPStatus.OK else REFUSED_SECONDS
            self._known[digest] = (status, self.clock() + seconds)
        while len(self._known) > MAX_REMEMBERED:
            del self._known[next(iter(self._known))]
        return status


def _is_token(text: str) -> bool:
    """Returns whether ``text`` can be sent on in a header."""
    return 0 < len(text) <= MAX_TOKEN and all("!" <= letter <= "~" for letter in text)
