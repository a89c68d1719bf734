"""Calls to the API server: JSON in, JSON out."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlencode

import aiohttp
import msgspec
from aiohttp.http import SERVER_SOFTWARE

from gpushare_core.json_object import UNREADABLE_JSON, Json
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.http_calls import HttpAnswer, HttpCalls, HttpServer, NotConnectedError

T = TypeVar("T")

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

CALL_TIMEOUT = 15.0
"""Seconds for one call that is no watch."""

_FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
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

    async def __aenter__(self) -> "KubeClient":
        connector = aiohttp.TCPConnector(ssl=self._credentials.tls, limit=self._connections)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
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
        return await self.send(Request(path=path))

    async def read(self, request: Request, *, shape: type[T]) -> T:
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
            answer = await self.send(Request(path=path, params=params))
            yield Page(answer.get("items") or [], answer["metadata"]["resourceVersion"])
            if not (token := answer["metadata"].get("continue")):
                return
            params = {**params, "continue": token}

    async def create(self, path: str, body: Json) -> Json:
        """Creates ``body`` in the collection at ``path``. Returns what the server made of it."""
        return await self.send(Request(method="POST", path=path, body=body, params=self._managed))

    async def merge(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        """JSON merge patch (RFC 7396) of an object that is there. Returns the object.

        With ``dry_run`` nothing is stored: the answer is what would be.
        """
        params = {**self._managed, **({"dryRun": "All"} if dry_run else {})}
        return await self.send(
            Request(method="PATCH", path=path, body=body, content_type=MERGE_PATCH, params=params)
        )

    async def apply(self, path: str, body: Json) -> Json:
        """Server-side apply, by force: creates the object if it is not there. Returns the object.

        The client needs a ``field_manager`` for it.
        """
        params = {**self._managed, "force": "true"}
        return await self.send(
            Request(method="PATCH", path=path, body=body, content_type=APPLY_PATCH, params=params)
        )

    async def delete(self, path: str, *, uid: str = "") -> Json:
        """Deletes the object at ``path``, and what belongs to it in the background.

        With ``uid`` only the very object that has it: a conflict otherwise.
        """
        options: Json = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        return await self.send(Request(method="DELETE", path=path, body=options))

    async def send(self, request: Request) -> Json:
        """Returns the decoded answer to ``request``."""
        return _decoded(request, await self._exchange(request), Json)

    async def stream(self, request: Request, *, idle: float) -> AsyncIterator[bytes]:
        """Yields the lines of a watch, each one JSON object, until the server ends it.

        Raises:
            ApiError: the watch was refused.
            UnreachableError: the connection broke, or nothing came for ``idle`` seconds.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._timeout, sock_read=idle)
        try:
            async with self._open(request, timeout) as response:
                if response.status != HTTPStatus.OK:
                    raise _refusal(response.status, await response.read())
                async for line in _lines(response.content):
                    yield line
        except (*_FAILURES, ValueError) as error:
            raise UnreachableError(f"watch {request.path}: {_reason(error)}") from error

    async def _exchange(self, request: Request) -> bytes:
        exchange = self._exchange_by_proxy if self._credentials.proxy else self._exchange_directly
        try:
            answer = await exchange(request)
        except (aiohttp.ClientConnectorError, NotConnectedError, ValueError) as error:
            raise NotSentError(f"{request}: {_reason(error)}") from error
        except _FAILURES as error:
            raise UnreachableError(f"{request}: {_reason(error)}") from error
        return _accepted(answer.status, answer.content)

    async def _exchange_directly(self, request: Request) -> HttpAnswer:
        """Raises ``NotConnectedError``, ``OSError``, or ``ValueError`` for what cannot be sent."""
        query = f"?{urlencode(request.params)}" if request.params else ""
        headers = {"User-Agent": SERVER_SOFTWARE, **self._headers(request)}
        message = self._calls.server.message(request.method, request.path + query, headers, _content(request))
        return await self._calls.call(
            message, seconds=request.timeout or self._timeout, is_repeatable=request.method == "GET"
        )

    async def _exchange_by_proxy(self, request: Request) -> HttpAnswer:
        """Raises ``aiohttp.ClientError``, ``OSError``, or ``ValueError`` for what cannot be sent."""
        timeout = aiohttp.ClientTimeout(total=request.timeout or self._timeout)
        async with self._open(request, timeout) as response:
            return HttpAnswer(response.status, await response.read())

    def _open(self, request: Request, timeout: aiohttp.ClientTimeout) -> Any:
        """Redirects are not followed: a write would become a GET, whose answer looks as if all were done."""
        return self._session.request(
            request.method,
            self._credentials.server.rstrip("/") + request.path,
            data=_content(request),
            params=request.params,
            headers=self._headers(request),
            timeout=timeout,
            server_hostname=self._credentials.server_name,
            proxy=self._credentials.proxy,
            allow_redirects=False,
        )

    def _headers(self, request: Request) -> dict[str, str]:
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


def _content(request: Request) -> bytes | None:
    return None if request.body is None else msgspec.json.encode(request.body)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Yields whole lines of any length; aiohttp's own readline refuses long ones."""
    unfinished = bytearray()
    async for chunk in content.iter_any():
        unfinished += chunk
        *whole, unfinished = unfinished.split(b"\n")
        for line in whole:
            if line:
                yield bytes(line)


def _accepted(status: int, content: bytes) -> bytes:
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return content
    raise _refusal(status, content)


def _decoded(request: Request, content: bytes, shape: type[T]) -> T:
    """A proxy between may answer 200 with a page of its own: that is no answer of the API server's."""
    try:
        return msgspec.json.decode(content, type=shape)
    except UNREADABLE_JSON as error:
        raise UnreachableError(f"{request}: the answer cannot be read: {error}") from error


def _reason(error: BaseException) -> str:
    """Some errors have no text, and that of others says nothing without their name."""
    name = type(error).__name__
    return f"{name}: {error}" if str(error) else name


def _refusal(status: int, content: bytes) -> ApiError:
    """Source: ``metav1.Status``. Proxies between answer with other bodies."""
    try:
        answer = msgspec.json.decode(content)
        return ApiError(status, str(answer.get("reason", "")), str(answer.get("message", "")))
    except (*UNREADABLE_JSON, AttributeError):
        return ApiError(status, "", content[:300].decode(errors="replace"))
