"""Calls to the API server: JSON in, JSON out."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Annotated, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp.http import SERVER_SOFTWARE

from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import (
    ApiError,
    NotSentError,
    UnreachableError,
    WatchEventTooLargeError,
    retry_after_seconds,
)
from gpushare_core.kube.http_calls import HttpAnswer, HttpCalls, HttpServer, NotConnectedError
from gpushare_core.process.deadline import Deadline
from gpushare_core.text.json_object import UNREADABLE_JSON, Json

T = TypeVar("T")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

CALL_TIMEOUT = 15.0
"""Seconds for one call that is no watch."""
GIVE_UP_SECONDS = 0.1
"""After which aiohttp is told again that a call is given up."""
MAX_EVENT = 16 * 2**20
"""Bytes. Source: client-go reads no longer one (``streaming.NewDecoder``); etcd takes objects of 1.5 MiB."""

_FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """One call to the API server."""

    method: str = "GET"
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    body: Json | None = None
    content_type: str = JSON
    accept: str = JSON
    timeout: float | None = None
    """Seconds for the whole call; None for the client's own."""

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class ListMetadata(msgspec.Struct):
    """Of objects, too. No list of the API server's is without a version: taken for one, such an answer would
    say that all is gone. An event without one would have its watch resumed from anywhere."""

    resource_version: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(name="resourceVersion")
    next_page: str = msgspec.field(name="continue", default="")


class _Page(msgspec.Struct):
    metadata: ListMetadata
    items: list[Json] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Some objects of a collection, and the resource version that all pages are of."""

    items: list[Json]
    resource_version: str


class KubeClient:
    """Use as an asynchronous context manager. Safe for concurrent calls on one event loop.

    ``timeout`` is in seconds. Writes are made in the name of ``field_manager`` where one is given.

    Every call raises ``ApiError`` when the server answered with an error, and ``UnreachableError`` when no
    complete answer came in time; ``NotSentError`` where nothing went out.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        connections: int = 32,
        timeout: float = CALL_TIMEOUT,
        field_manager: str = "",
    ) -> None:
        self._credentials = credentials
        self._connections = connections
        self._timeout = timeout
        self._managed = {"fieldManager": field_manager} if field_manager else {}
        self._clock = time.monotonic
        self._left_alone_until = float("-inf")

    @property
    def asked_to_wait(self) -> float:
        """Seconds before which the server does not want to be asked again, as any of its answers has said.

        For those who try a whole round again, and do not know which call has failed.
        """
        return max(0.0, self._left_alone_until - self._clock())

    async def __aenter__(self) -> "KubeClient":
        connector = aiohttp.TCPConnector(limit=self._connections)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        # Else it sends a PUT or DELETE again of which nobody knows whether it was heard.
        self._session._retry_connection = False
        credentials = self._credentials
        server = HttpServer.at(credentials.server, credentials.tls, credentials.server_name)
        self._calls = HttpCalls(server, self._connections)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._calls.close()
        await self._session.close()

    async def get(self, path: str) -> Json:
        """Returns the object or list at ``path``."""
        return await self.send(ApiRequest(path=path))

    async def read(self, request: ApiRequest, *, shape: type[T]) -> T:
        """Returns the answer decoded as ``shape``: on hot paths a msgspec Struct that leaves out what nobody
        needs."""
        return _decoded(request, await self._exchange(request), shape)

    async def pages(
        self, path: str, *, limit: int, label_selector: str = "", field_selector: str = ""
    ) -> AsyncIterator[Page]:
        """Yields every object of a collection, at most ``limit`` at a time."""
        selectors = {"labelSelector": label_selector, "fieldSelector": field_selector}
        params = {"limit": str(limit), **{name: value for name, value in selectors.items() if value}}
        while True:
            answer = await self.read(ApiRequest(path=path, params=params), shape=_Page)
            yield Page(answer.items or [], answer.metadata.resource_version)
            if not (token := answer.metadata.next_page):
                return
            params = {**params, "continue": token}

    async def create(self, path: str, body: Json) -> Json:
        """Creates ``body`` in the collection at ``path``. Returns what the server made of it."""
        return await self.send(ApiRequest(method="POST", path=path, body=body, params=self._managed))

    async def merge(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """JSON merge patch (RFC 7396) of an object that is there. Returns the object.

        With ``dry_run`` nothing is stored: the answer is what would be.
        """
        params = {**self._managed, **({"dryRun": "All"} if dry_run else {})}
        return await self.send(
            ApiRequest(method="PATCH", path=path, body=body, content_type=MERGE_PATCH, params=params)
        )

    async def apply(self, path: str, body: Json) -> Json:
        """Server-side apply, by force: creates the object if it is not there. Returns the object.

        The client needs a ``field_manager`` for it.
        """
        params = {**self._managed, "force": "true"}
        return await self.send(
            ApiRequest(method="PATCH", path=path, body=body, content_type=APPLY_PATCH, params=params)
        )

    async def delete(self, path: str, *, uid: str = "") -> Json:
        """Deletes the object at ``path``, and what belongs to it in the background.

        With ``uid`` only the very object that has it: a conflict otherwise.
        """
        options: Json = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        return await self.send(ApiRequest(method="DELETE", path=path, body=options))

    async def send(self, request: ApiRequest) -> Json:
        """Returns the decoded answer to ``request``."""
        return _decoded(request, await self._exchange(request), Json)

    async def stream(self, request: ApiRequest, *, idle: float) -> AsyncIterator[bytes]:
        """Yields the lines of a watch, each one JSON object, until the server ends it.

        Raises:
            ApiError: the watch was refused.
            UnreachableError: the connection broke, or no line came for ``idle`` seconds.
            WatchEventTooLargeError: a line is longer than ``MAX_EVENT``.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout)
        try:
            async with asyncio.timeout(idle):
                response = await self._open(request, timeout)
            async with response:
                if response.status != HTTPStatus.OK:
                    async with asyncio.timeout(idle):
                        raise self._refusal(await _answer(response))
                async for line in _lines(response.content, idle):
                    yield line
        except (*_FAILURES, ValueError) as error:
            raise UnreachableError(f"watch {request.path}: {_reason(error)}") from error

    async def _exchange(self, request: ApiRequest) -> bytes:
        exchange = self._exchange_by_proxy if self._credentials.proxy else self._exchange_directly
        try:
            answer = await exchange(request)
        except (aiohttp.ClientConnectorError, NotConnectedError, ValueError) as error:
            raise NotSentError(f"{request}: {_reason(error)}") from error
        except _FAILURES as error:
            raise UnreachableError(f"{request}: {_reason(error)}") from error
        if answer.status >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._refusal(answer)
        return answer.content

    async def _exchange_directly(self, request: ApiRequest) -> HttpAnswer:
        """Raises ``NotConnectedError``, ``OSError``, or ``ValueError`` for what cannot be sent."""
        query = f"?{urlencode(request.params)}" if request.params else ""
        headers = {"User-Agent": SERVER_SOFTWARE, **self._headers(request)}
        message = self._calls.server.message(request.method, request.path + query, headers, _content(request))
        return await self._calls.call(
            message, seconds=request.timeout or self._timeout, is_repeatable=request.method == "GET"
        )

    async def _exchange_by_proxy(self, request: ApiRequest) -> HttpAnswer:
        """Raises ``aiohttp.ClientError``, ``OSError``, or ``ValueError`` for what cannot be sent.

        As with direct calls, reading is tried once more where a kept connection ends.
        """
        async with asyncio.timeout(request.timeout or self._timeout):
            try:
                return await self._answer_by_proxy(request)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                if request.method != "GET" or isinstance(error, aiohttp.ClientConnectorError):
                    raise
            return await self._answer_by_proxy(request)

    async def _answer_by_proxy(self, request: ApiRequest) -> HttpAnswer:
        async with await self._open(request, aiohttp.ClientTimeout(total=None)) as response:
            return await _answer(response)

    async def _open(self, request: ApiRequest, timeout: aiohttp.ClientTimeout) -> aiohttp.ClientResponse:
        """Redirects are not followed: a write would become a GET, whose answer looks as if all were done.

        aiohttp, too, forgets that it is given up at the moment one of several addresses is won: it is told so
        until it obeys.
        """
        opening = self._session.request(
            request.method,
            self._credentials.server.rstrip("/") + request.path,
            data=_content(request),
            params=request.params,
            headers=self._headers(request),
            timeout=timeout,
            server_hostname=self._credentials.server_name,
            ssl=self._credentials.tls(),
            proxy=self._credentials.proxy,
            allow_redirects=False,
        )
        task = asyncio.create_task(_awaited(opening))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            while not task.done():
                task.cancel()
                await asyncio.wait([task], timeout=GIVE_UP_SECONDS)
            if not task.cancelled() and not task.exception():
                task.result().close()
            raise

    def _refusal(self, answer: HttpAnswer) -> ApiError:
        error = _api_error(answer)
        self._left_alone_until = max(self._left_alone_until, self._clock() + error.retry_after)
        return error

    def _headers(self, request: ApiRequest) -> dict[str, str]:
        """Raises ``NotSentError`` where the token cannot be read."""
        headers = {"Accept": request.accept, "Content-Type": request.content_type}
        try:
            token = self._credentials.token()
        except OSError as error:
            raise NotSentError(f"{request}: no token: {_reason(error)}") from error
        if token:
            scheme = "" if token.startswith("Basic ") else "Bearer "
            headers["Authorization"] = scheme + token.strip()
        return headers


def _content(request: ApiRequest) -> bytes | None:
    return None if request.body is None else msgspec.json.encode(request.body)


async def _awaited(opening: Awaitable[T]) -> T:
    return await opening


async def _answer(response: aiohttp.ClientResponse) -> HttpAnswer:
    return HttpAnswer(response.status, await response.read(), response.headers.get("Retry-After", ""))


async def _lines(content: aiohttp.StreamReader, idle: float) -> AsyncIterator[bytes]:
    """Yields whole lines; aiohttp's own readline refuses long ones. Blank ones are no sign of the server: a
    proxy may send them for as long as anybody listens.

    Raises:
        TimeoutError: none came for ``idle`` seconds.
        WatchEventTooLargeError: one is longer than ``MAX_EVENT``.
    """
    silence, unfinished = Deadline(lambda: content.set_exception(TimeoutError())), bytearray()
    silence.set(idle)
    try:
        while chunk := await content.readany():
            for end, more in enumerate(chunk.split(b"\n")):
                if end and unfinished:
                    line, unfinished = bytes(unfinished), bytearray()
                    silence.clear()  # as long as it takes whoever reads
                    yield line
                    silence.set(idle)
                unfinished += more
                if len(unfinished) > MAX_EVENT:
                    raise WatchEventTooLargeError(
                        f"more than {MAX_EVENT >> 20} MiB came without the end of a line"
                    )
    finally:
        silence.close()


def _decoded(request: ApiRequest, content: bytes, shape: type[T]) -> T:
    """A proxy between may answer 200 with a page of its own: that is no answer of the API server's."""
    try:
        return msgspec.json.decode(content, type=shape)
    except UNREADABLE_JSON as error:
        raise UnreachableError(f"{request}: the answer cannot be read: {error}") from error


def _reason(error: BaseException) -> str:
    """Some errors have no text, and that of others says nothing without their name."""
    name = type(error).__name__
    return f"{name}: {error}" if str(error) else name


def _api_error(answer: HttpAnswer) -> ApiError:
    """Source: ``metav1.Status``. Proxies between answer with other bodies."""
    try:
        told = msgspec.json.decode(answer.content)
        reason, message = str(told.get("reason", "")), str(told.get("message", ""))
    except (*UNREADABLE_JSON, AttributeError):
        reason, message = "", answer.content[:300].decode(errors="replace")
    after = retry_after_seconds(answer.status, answer.retry_after)
    return ApiError(answer.status, reason, message, retry_after=after)
