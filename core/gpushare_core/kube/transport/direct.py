"""Our own HTTP/1.1, as far as the API server needs it: one request, one response, over kept connections.

aiohttp can do much more, and takes four times as long for each request: a tenth of what a bind costs.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, urlencode

import aiohappyeyeballs
import httptools
from aiohappyeyeballs import AddrInfoType

from gpushare_core.kube.credentials import Credentials, checked_server
from gpushare_core.kube.request import ApiRequest
from gpushare_core.kube.response import HttpResponse
from gpushare_core.kube.tls import TlsSource
from gpushare_core.kube.transport.connecting import cancellable
from gpushare_core.kube.transport.transport import BrokenError, Headers, NotConnectedError, Transport

IDLE_SECONDS = 15.0
"""For which a connection is kept without a request: the connections of a burst cost memory."""
NEXT_ADDRESS_SECONDS = 0.25
"""After which the next address of a host is tried in parallel (RFC 8305): otherwise one of several servers,
switched off, would cost every request all of its time."""
_PATH = "/%:@!$&'()*+,;=~"
"""Characters that stay as they are in a path; callers quote names themselves."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """Where it listens, and how it is recognized."""

    host: str
    port: int
    authority: str
    """The header ``Host`` of a request."""
    folder: str = ""
    """Where all paths begin."""
    tls: TlsSource | None = None
    name: str | None = None
    """What the server's certificate has to name, where that is not ``host``."""

    @classmethod
    def at(cls, url: str, tls: TlsSource, name: str | None = None) -> "HttpServer":
        """Raises ``ValueError`` for what is no URL of a server."""
        host, parts = checked_server(url)
        is_encrypted = parts.scheme == "https"
        return cls(
            host=host,
            port=parts.port or (443 if is_encrypted else 80),
            authority=parts.netloc.rpartition("@")[2],
            folder=parts.path.rstrip("/"),
            tls=tls if is_encrypted else None,
            name=name if is_encrypted else None,
        )

    def message(self, method: str, target: str, headers: Headers, content: bytes | None) -> bytes:
        """Returns the bytes of a request. ``target`` is a path, with a query or without.

        Raises:
            ValueError: a header is more than one line.
        """
        path, mark, query = target.partition("?")
        length = () if content is None else (("Content-Length", str(len(content))),)
        lines = [
            f"{method} {self.folder}{quote(path, safe=_PATH)}{mark}{query} HTTP/1.1",
            *(f"{name}: {value}" for name, value in (("Host", self.authority), *headers, *length)),
        ]
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise ValueError("a header has to be one line")
        return text.encode() + b"\r\n\r\n" + (content or b"")


class DirectTransport:
    """A ``Transport`` without a proxy. Watches go by aiohttp, which is imported with the first one: it is the
    longest part of a program's start."""

    def __init__(self, credentials: Credentials, connections: int) -> None:
        server = HttpServer.at(credentials.server, credentials.tls, credentials.server_name)
        self._pool = ConnectionPool(server, connections)
        self._credentials, self._connections = credentials, connections
        self._watches: Transport | None = None

    async def close(self) -> None:
        self._pool.close()
        if self._watches:
            await self._watches.close()

    async def exchange(self, request: ApiRequest, headers: Headers, *, seconds: float) -> HttpResponse:
        query = f"?{urlencode(request.params)}" if request.params else ""
        message = self._pool.server.message(request.method, request.path + query, headers, request.content())
        return await self._pool.send(message, seconds=seconds, is_repeatable=request.method == "GET")

    def stream(
        self, request: ApiRequest, headers: Headers, *, connect_seconds: float, idle: float
    ) -> AsyncGenerator[bytes, None]:
        from gpushare_core.kube.transport.proxy import ProxyTransport

        self._watches = self._watches or ProxyTransport(self._credentials, self._connections)
        return self._watches.stream(request, headers, connect_seconds=connect_seconds, idle=idle)


@dataclass(slots=True)
class ConnectionPool:
    """Kept connections to one ``server``: at most ``size`` requests at a time, others wait."""

    server: HttpServer
    size: int
    idle: float = IDLE_SECONDS
    _slots: asyncio.Semaphore = field(init=False)
    _idle: "dict[_PooledConnection, float]" = field(default_factory=dict, init=False)
    """Since when each connection has been idle; the one used last comes last, and is used next."""
    _sweeping: asyncio.TimerHandle | None = field(default=None, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.size)

    async def send(self, message: bytes, *, seconds: float, is_repeatable: bool = False) -> HttpResponse:
        """Returns the response to ``message``; raises as ``Transport.exchange``.

        A server may end a kept connection just when a request is sent on it: a repeatable request is then
        sent once more.
        """
        connection = None
        try:
            async with asyncio.timeout(seconds), self._slots:
                if connection := self._kept():
                    try:
                        return await self._send_on(connection, message)
                    except BrokenError:
                        if not is_repeatable:
                            raise
                connection = await self._connect()
                return await self._send_on(connection, message)
        except TimeoutError as error:
            if connection is None:
                raise NotConnectedError(f"no connection within {seconds:g} s") from error
            raise

    def close(self) -> None:
        """Ends the idle connections; the others end with their requests."""
        self._is_closed = True
        if self._sweeping:
            self._sweeping.cancel()
        for connection in [*self._idle]:
            connection.close()
        self._idle.clear()

    def _kept(self) -> "_PooledConnection | None":
        """Returns the connection that was used last. The API server checks the certificate of a connection at
        every request: connections from before a renewal are ended."""
        tls = self.server.tls and self.server.tls()
        while self._idle:
            connection = self._idle.popitem()[0]
            if connection.tls is tls:
                return connection
            connection.close()
        return None

    async def _send_on(self, connection: "_PooledConnection", message: bytes) -> HttpResponse:
        try:
            return await connection.send(message)
        finally:
            if connection.is_reusable and not self._is_closed:
                self._keep(connection)
            else:
                connection.close()

    async def _connect(self) -> "_PooledConnection":
        try:
            return await self._start(await self._reach())
        except OSError as error:
            raise NotConnectedError(f"{type(error).__name__}: {error}") from error

    async def _reach(self) -> socket.socket:
        """asyncio itself tries several addresses in the same way, but leaves a socket open when cancelled."""
        addresses = await _addresses(self.server.host, self.server.port)
        connecting = aiohappyeyeballs.start_connection(addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS)
        return await cancellable(connecting, close=socket.socket.close)

    async def _start(self, reached: socket.socket) -> "_PooledConnection":
        server = self.server
        tls = server.tls and server.tls()
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _PooledConnection(self._lost, tls),
            sock=reached,
            ssl=tls,
            server_hostname=(server.name or server.host) if tls else None,
        )
        return connection

    def _lost(self, connection: "_PooledConnection") -> None:
        self._idle.pop(connection, None)

    def _keep(self, connection: "_PooledConnection") -> None:
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.time()
        if self._sweeping is None:
            self._sweeping = loop.call_later(self.idle, self._sweep)

    def _sweep(self) -> None:
        """Ends connections that have been idle for long, and looks again when the next one is due."""
        loop = asyncio.get_running_loop()
        self._sweeping = None
        for connection, since in [*self._idle.items()]:
            left = since + self.idle - loop.time()
            if left > 0:
                self._sweeping = loop.call_later(left, self._sweep)
                return
            del self._idle[connection]
            connection.close()


async def _addresses(host: str, port: int) -> Sequence[AddrInfoType]:
    """Needs no thread where ``host`` is an address, as it mostly is."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class _PooledConnection(asyncio.Protocol):
    """One request at a time. Its parser calls the methods that are named as in ``httptools``."""

    def __init__(self, lost: "Callable[[_PooledConnection], None]", tls: ssl.SSLContext | None) -> None:
        self.tls = tls
        self._lost = lost
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._response: asyncio.Future[HttpResponse] | None = None
        self._parts: list[bytes] = []
        self._has_headers = self._says_length = False
        self._retry_after = ""
        self.is_reusable = False
        """Whether the last response was complete and the server keeps the connection."""

    async def send(self, message: bytes) -> HttpResponse:
        """Raises ``NotConnectedError`` or ``BrokenError``."""
        if self._transport is None:
            raise NotConnectedError("the server has ended the connection")
        self._response = asyncio.get_running_loop().create_future()
        self._parts, self._has_headers, self.is_reusable = [], False, False
        self._transport.write(message)
        try:
            return await self._response
        finally:
            self._response = None

    def close(self) -> None:
        """Does not wait for the server: no request is under way that anybody waits for."""
        transport, self._transport = self._transport, None
        if transport:
            transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._break(f"no HTTP/1.1: {error.__context__ or error}")

    def eof_received(self) -> None:
        """The response of some proxies does not say how long it is, and ends with the connection.

        The connection is out of use at once: with TLS ``connection_lost`` comes some steps later.
        """
        if self._has_headers and not self._says_length:
            self.on_message_complete()
        self._break("the server has ended the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._break(f"the server has ended the connection{f': {exc}' if exc else ''}")

    # httptools

    def on_message_begin(self) -> None:
        if self._response is None or self._response.done():
            raise BrokenError("a response without a request")
        self._has_headers = self._says_length = False
        self._retry_after = ""

    def on_header(self, name: bytes, text: bytes) -> None:
        lowered = name.lower()
        if lowered in (b"content-length", b"transfer-encoding"):
            self._says_length = True
        elif lowered == b"retry-after":
            self._retry_after = text.decode("ascii", "replace")

    def on_headers_complete(self) -> None:
        self._has_headers = True

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < HTTPStatus.OK:  # the final response follows
            self._has_headers = False
        elif self._response and not self._response.done():
            self.is_reusable = self._parser.should_keep_alive()
            self._response.set_result(HttpResponse(status, b"".join(self._parts), self._retry_after))
            self._parts = []  # a page of a list must not live as long as the connection

    def _break(self, why: str) -> None:
        self.is_reusable = False
        if self._response and not self._response.done():
            self._response.set_exception(BrokenError(why))
        self.close()
        self._lost(self)
