"""Calls to the API server: JSON in, JSON out."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from http import HTTPStatus
from types import TracebackType
from typing import Any, TypeVar

import aiohttp
import msgspec

from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError

Json = dict[str, Any]
T = TypeVar("T")
Params = Mapping[str, str]

MERGE_PATCH = "application/merge-patch+json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
METADATA = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

CALL_TIMEOUT = 15.0
"""Seconds for one call that is no watch."""

_FAILURES = (aiohttp.ClientError, asyncio.TimeoutError, OSError)


class KubeClient:
    """Use as an asynchronous context manager. Safe for concurrent calls on one event loop."""

    def __init__(
        self, credentials: Credentials, *, connections: int = 32, timeout: float = CALL_TIMEOUT
    ) -> None:
        self._credentials = credentials
        self._connections = connections
        self._timeout = timeout

    async def __aenter__(self) -> "KubeClient":
        connector = aiohttp.TCPConnector(ssl=self._credentials.tls, limit=self._connections)
        self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def get(self, path: str, *, params: Params | None = None, accept: str = "application/json") -> Json:
        return await self.call("GET", path, params=params, accept=accept)

    async def post(self, path: str, body: Json) -> Json:
        return await self.call("POST", path, body=body)

    async def patch(self, path: str, body: Json) -> Json:
        """JSON merge patch (RFC 7396)."""
        return await self.call("PATCH", path, body=body, kind=MERGE_PATCH)

    async def delete(self, path: str, body: Json | None = None) -> Json:
        return await self.call("DELETE", path, body=body)

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        params: Params | None = None,
        kind: str = "application/json",
        accept: str = "application/json",
        timeout: float | None = None,
    ) -> Json:
        """Send one request and return the decoded answer. ``timeout`` in seconds, else the client's own.

        Raises:
            ApiError: the server answered with an error.
            UnreachableError: no complete answer came in time; ``NotSentError`` where nothing went out.
        """
        content = await self._exchange(
            method, path, body=body, params=params, kind=kind, accept=accept, timeout=timeout
        )
        return _decoded(f"{method} {path}", content, Json)

    async def read(
        self, path: str, *, shape: type[T], params: Params | None = None, accept: str = "application/json"
    ) -> T:
        """GET, decoded as ``shape``: on hot paths a msgspec Struct that leaves out what nobody needs.

        Raises:
            ApiError, UnreachableError: as ``call``.
        """
        content = await self._exchange("GET", path, params=params, accept=accept)
        return _decoded(f"GET {path}", content, shape)

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        body: Json | None = None,
        params: Params | None = None,
        kind: str = "application/json",
        accept: str = "application/json",
        timeout: float | None = None,
    ) -> bytes:
        limit = aiohttp.ClientTimeout(total=timeout or self._timeout)
        data = None if body is None else msgspec.json.encode(body)
        try:
            async with self._request(
                method, path, data=data, params=params, kind=kind, accept=accept, timeout=limit
            ) as response:
                return _accepted(response.status, await response.read())
        except aiohttp.ClientConnectorError as error:
            raise NotSentError(f"{method} {path}: {_told(error)}") from error
        except _FAILURES as error:
            raise UnreachableError(f"{method} {path}: {_told(error)}") from error

    async def stream(self, path: str, *, params: Params, accept: str, idle: float) -> AsyncIterator[bytes]:
        """Yield the lines of a watch, each one JSON object, until the server ends it.

        Raises:
            ApiError: the watch was refused.
            UnreachableError: the connection broke, or nothing came for ``idle`` seconds.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_read=idle)
        try:
            async with self._request(
                "GET", path, data=None, params=params, kind="", accept=accept, timeout=timeout
            ) as response:
                if response.status != HTTPStatus.OK:
                    raise _refusal(response.status, await response.read())
                async for line in _lines(response.content):
                    yield line
        except _FAILURES as error:
            raise UnreachableError(f"watch {path}: {_told(error)}") from error

    def _request(
        self,
        method: str,
        path: str,
        *,
        data: bytes | None,
        params: Params | None,
        kind: str,
        accept: str,
        timeout: aiohttp.ClientTimeout,
    ) -> Any:
        headers = {"Accept": accept, "Content-Type": kind or "application/json"}
        if token := self._credentials.token():
            headers["Authorization"] = f"Bearer {token.strip()}"
        url = self._credentials.server + path
        return self._session.request(method, url, data=data, params=params, headers=headers, timeout=timeout)


async def _lines(content: aiohttp.StreamReader) -> AsyncIterator[bytes]:
    """Whole lines of any length; aiohttp's own readline refuses long ones."""
    rest = bytearray()
    async for chunk in content.iter_any():
        rest += chunk
        *whole, tail = rest.split(b"\n")
        rest = tail
        for line in whole:
            if line:
                yield bytes(line)


def _accepted(status: int, content: bytes) -> bytes:
    if status < HTTPStatus.MULTIPLE_CHOICES:
        return content
    raise _refusal(status, content)


def _decoded(request: str, content: bytes, shape: type[T]) -> T:
    """A proxy between may answer 200 with a page of its own: that is no answer of the API server's."""
    try:
        return msgspec.json.decode(content, type=shape)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UnreachableError(f"{request}: the answer cannot be read: {error}") from error


def _told(error: BaseException) -> str:
    """Timeouts, for one, have no text."""
    return str(error) or type(error).__name__


def _refusal(status: int, content: bytes) -> ApiError:
    """Source: ``metav1.Status``. Proxies between answer with other bodies."""
    try:
        told = msgspec.json.decode(content)
        return ApiError(status, str(told.get("reason", "")), str(told.get("message", "")))
    except (msgspec.DecodeError, AttributeError):
        return ApiError(status, "", content[:300].decode(errors="replace"))
