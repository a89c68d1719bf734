"""aiohttp: every request by a proxy, and every watch on either way."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from http import HTTPStatus

import aiohttp

from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import WatchEventTooLargeError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import HttpResponse
from gpushare_core.kube.transport.connecting import cancellable
from gpushare_core.kube.transport.transport import BrokenError, Headers, NotConnectedError, RefusedStreamError
from gpushare_core.process.deadline import Deadline

MAX_EVENT = 16 * 2**20
"""Bytes. Source: client-go reads no longer one (``streaming.NewDecoder``); etcd takes objects of 1.5 MiB."""


def new_session(connections: int) -> aiohttp.ClientSession:
    """By itself aiohttp sends a PUT or DELETE again when a kept connection ends, although the server may have
    carried it out. Only a private attribute of the session turns that off."""
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=connections), auto_decompress=True)
    session._retry_connection = False
    return session


class ProxyTransport:
    """A ``Transport``; direct where the credentials name no proxy."""

    def __init__(self, credentials: Credentials, connections: int) -> None:
        self._credentials = credentials
        self._session = new_session(connections)

    async def close(self) -> None:
        await self._session.close()

    async def exchange(self, request: ApiRequest, headers: Headers, *, seconds: float) -> HttpResponse:
        try:
            async with asyncio.timeout(seconds):
                try:
                    return await self._response(request, headers)
                except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
                    if request.method != "GET" or isinstance(error, aiohttp.ClientConnectorError):
                        raise
                return await self._response(request, headers)
        except aiohttp.ClientConnectorError as error:
            raise NotConnectedError(_text(error)) from error
        except aiohttp.ClientError as error:
            raise _failure(error) from error

    async def stream(
        self, request: ApiRequest, headers: Headers, *, connect_seconds: float, idle: float
    ) -> AsyncGenerator[bytes, None]:
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_seconds)
        try:
            async with asyncio.timeout(idle):
                response = await self._open(request, headers, timeout)
            async with response:
                if response.status != HTTPStatus.OK:
                    async with asyncio.timeout(idle):
                        raise RefusedStreamError(await _read(response))
                async for line in _lines(response.content, idle):
                    yield line
        except aiohttp.ClientError as error:
            raise _failure(error) from error

    async def _response(self, request: ApiRequest, headers: Headers) -> HttpResponse:
        async with await self._open(request, headers, aiohttp.ClientTimeout(total=None)) as response:
            return await _read(response)

    async def _open(
        self, request: ApiRequest, headers: Headers, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientResponse:
        """Follows no redirects: a write would become a GET, and look as if it were done."""
        opening = self._session.request(
            request.method,
            self._credentials.server.rstrip("/") + request.path,
            data=request.content(),
            params=request.params,
            headers=headers,
            timeout=timeout,
            server_hostname=self._credentials.server_name,
            ssl=self._credentials.tls(),
            proxy=self._credentials.proxy,
            allow_redirects=False,
        )
        return await cancellable(opening, close=aiohttp.ClientResponse.close)


async def _read(response: aiohttp.ClientResponse) -> HttpResponse:
    return HttpResponse(response.status, await response.read(), response.headers.get("Retry-After", ""))


def _failure(error: aiohttp.ClientError) -> Exception:
    """Returns what a ``Transport`` raises for ``error``."""
    return error if isinstance(error, ValueError) else BrokenError(_text(error))


def _text(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"cannot connect to {error.host}:{error.port}: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):  # its own text has the address of an object in memory
        return f"cannot connect to {error.host}:{error.port}: {error.os_error}"
    return str(error) or type(error).__name__


async def _lines(content: aiohttp.StreamReader, idle: float) -> AsyncIterator[bytes]:
    """Yields whole lines; aiohttp's own readline refuses long ones. A blank line is no sign of the API
    server: a proxy may send them for as long as anybody listens.

    Raises:
        TimeoutError: no line came for ``idle`` seconds.
        WatchEventTooLargeError: a line is longer than ``MAX_EVENT``.
    """
    silence, unfinished = Deadline(lambda: content.set_exception(TimeoutError())), bytearray()
    silence.set(idle)
    try:
        while chunk := await content.readany():
            for end, more in enumerate(chunk.split(b"\n")):
                if end and unfinished:
                    line, unfinished = bytes(unfinished), bytearray()
                    silence.clear()  # the reader may take as long as it likes
                    yield line
                    silence.set(idle)
                unfinished += more
                if len(unfinished) > MAX_EVENT:
                    raise WatchEventTooLargeError(
                        f"more than {MAX_EVENT >> 20} MiB came without the end of a line"
                    )
    finally:
        silence.close()
