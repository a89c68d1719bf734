"""The API server's client: JSON in, JSON out."""

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from http import HTTPStatus
from types import TracebackType
from typing import TypeVar

from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.request import APPLY_PATCH, MERGE_PATCH, ApiRequest
from gpushare_core.kube.response import HttpResponse, ListResponse, Page, decoded, refusal
from gpushare_core.kube.transport.direct import DirectTransport
from gpushare_core.kube.transport.transport import Headers, NotConnectedError, RefusedStreamError, Transport
from gpushare_core.process.version import VERSION
from gpushare_core.text.json_object import Json

T = TypeVar("T")

REQUEST_TIMEOUT = 15.0
"""Seconds for one request that is no watch."""
_USER_AGENT = ("User-Agent", f"gpushare/{VERSION}")
"""The API server's audit log has it."""


class KubeClient:
    """Use as an asynchronous context manager. Safe for concurrent requests on one event loop.

    ``timeout`` is in seconds. Writes name ``field_manager`` where one is given.

    Every method raises ``ApiError`` when the server answered with an error, and ``UnreachableError`` when no
    complete response came in time; ``NotSentError`` when nothing was sent; with credentials that have a
    ``Renewal`` also ``NoCredentialsError``.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections: int = 32,
        timeout: float = REQUEST_TIMEOUT,
        field_manager: str = "",
    ) -> None:
        self._credentials = credentials
        self._connections = connections
        self._timeout = timeout
        self._managed = {"fieldManager": field_manager} if field_manager else {}
        self._clock = time.monotonic
        self._wait_until = float("-inf")

    @property
    def asked_to_wait(self) -> float:
        """Seconds for which the server wants no requests, by the longest ``Retry-After`` of its refusals.

        For callers who repeat a whole round and do not know which request has failed.
        """
        return max(0.0, self._wait_until - self._clock())

    async def __aenter__(self) -> "KubeClient":
        self._transport = self._chosen_transport()
        return self

    def _chosen_transport(self) -> Transport:
        if not self._credentials.proxy:
            return DirectTransport(self._credentials, self._connections)
        from gpushare_core.kube.transport.proxy import ProxyTransport  # needs aiohttp: a good part of a start

        return ProxyTransport(self._credentials, self._connections)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    async def get(self, path: str) -> Json:
        """Returns the object or list at ``path``."""
        return await self.send(ApiRequest(path=path))

    async def read(self, request: ApiRequest, *, shape: type[T]) -> T:
        """Returns the response decoded as ``shape``: on hot paths a msgspec Struct with only the fields that
        are needed."""
        return decoded(request, await self._exchange(request), shape)

    async def pages(
        self, path: str, *, limit: int, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Page]:
        """Yields every object of a collection, at most ``limit`` at a time."""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        params = {"limit": str(limit), **{name: value for name, value in selectors.items() if value}}
        while True:
            page = await self.read(ApiRequest(path=path, params=params), shape=ListResponse[Json])
            yield Page(page.items or [], page.metadata.resource_version)
            if not (token := page.metadata.next_page):
                return
            params = {**params, "continue": token}

    async def create(self, path: str, body: Json) -> Json:
        """Creates ``body`` in the collection at ``path``. As all writes, returns the object."""
        return await self.send(ApiRequest(method="POST", path=path, body=body, params=self._managed))

    async def merge(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """JSON merge patch (RFC 7396) of an object that exists. Returns the object.

        With ``dry_run`` nothing is stored: the result is what would be.
        """
        params = {**self._managed, "dryRun": "All"} if dry_run else self._managed
        return await self.send(_patch(path, body, params, content_type=MERGE_PATCH))

    async def apply(self, path: str, body: Json) -> Json:
        """Server-side apply, by force: creates the object if it does not exist. Returns the object.

        The client needs a ``field_manager`` for it.
        """
        params = {**self._managed, "force": "true"}
        return await self.send(_patch(path, body, params, content_type=APPLY_PATCH))

    async def delete(self, path: str, *, uid: str = "") -> Json:
        """Deletes the object at ``path``, and in the background what it owns.

        With ``uid`` only the object that has it: a conflict otherwise.
        """
        preconditions = {"preconditions": {"uid": uid}} if uid else {}
        body = {"propagationPolicy": "Background", **preconditions}
        return await self.send(ApiRequest(method="DELETE", path=path, body=body))

    async def send(self, request: ApiRequest) -> Json:
        """Returns the decoded response to ``request``."""
        return decoded(request, await self._exchange(request), Json)

    async def stream(self, request: ApiRequest, *, idle: float) -> AsyncIterator[bytes]:
        """Yields the lines of a watch, each one JSON object, until the server ends it.

        Raises:
            ApiError: the server refused the watch.
            UnreachableError: the connection broke, or no line came for ``idle`` seconds.
            WatchEventTooLargeError: a line is too long for an event.
        """
        await self._prepared()
        try:
            stream = self._transport.stream(
                request, self._headers(request), connect_seconds=self._timeout, idle=idle
            )
            async with aclosing(stream) as lines:
                async for line in lines:
                    yield line
        except RefusedStreamError as error:
            raise self._refusal(error.response) from None
        except (NotConnectedError, OSError, ValueError) as error:
            raise UnreachableError(f"watch {request.path}: {_reason(error)}") from error

    async def _exchange(self, request: ApiRequest) -> bytes:
        number, renewal = await self._prepared(), self._credentials.renewal
        response = await self._sent(request)
        while renewal and response.status == HTTPStatus.UNAUTHORIZED:
            await renewal.refused(number)
            number = await self._prepared()
            response = await self._sent(request)
        if response.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._refusal(response)
        return response.content

    async def _prepared(self) -> int:
        return await self._credentials.renewal.prepared() if self._credentials.renewal else 0

    async def _sent(self, request: ApiRequest) -> HttpResponse:
        headers, seconds = self._headers(request), request.timeout or self._timeout
        try:
            return await self._transport.exchange(request, headers, seconds=seconds)
        except (NotConnectedError, ValueError) as error:
            raise NotSentError(f"{request}: {_reason(error)}") from error
        except OSError as error:
            raise UnreachableError(f"{request}: {_reason(error)}") from error

    def _refusal(self, response: HttpResponse) -> ApiError:
        error = refusal(response)
        self._wait_until = max(self._wait_until, self._clock() + error.retry_after)
        return error

    def _headers(self, request: ApiRequest) -> Headers:
        """Raises ``NotSentError`` where the token cannot be read."""
        usual = (_USER_AGENT, ("Accept", request.accept), ("Content-Type", request.content_type))
        try:
            token = self._credentials.token()
        except (OSError, ValueError) as error:
            raise NotSentError(f"{request}: no token: {_reason(error)}") from error
        if not token:
            return (*usual, *self._credentials.headers)
        scheme = "" if token.startswith("Basic ") else "Bearer "
        return (*usual, ("Authorization", scheme + token.strip()), *self._credentials.headers)


def _patch(path: str, body: Json, params: Mapping[str, str], *, content_type: str) -> ApiRequest:
    return ApiRequest(method="PATCH", path=path, body=body, content_type=content_type, params=params)


def _reason(error: BaseException) -> str:
    """Some errors have no text, and the text of others says nothing without their name."""
    name = type(error).__name__
    return f"{name}: {error}" if str(error) else name
