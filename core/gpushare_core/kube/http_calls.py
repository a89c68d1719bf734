"""HTTP/1.1 as far as calls need it: one request out, one answer in, over connections that are kept.

aiohttp can do much more, and takes four times as long for each call: a tenth of all that a bind costs.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

import aiohappyeyeballs
import httptools
from aiohappyeyeballs import AddrInfoType

from gpushare_core.kube.tls import TlsSource

IDLE_SECONDS = 15.0
"""A connection is kept for so long without a call: those of one burst cost memory."""
NEXT_ADDRESS_SECONDS = 0.25
"""After which the next address of a host is tried besides (RFC 8305): else one of several servers that is
switched off would cost every call all of its time."""
_PATH = "/%:@!$&'()*+,;=~"
"""What is left as it is of a path; callers quote names by themselves."""


def checked_server(url: str) -> tuple[str, SplitResult]:
    """Returns the host in ``url``, and its parts. Raises ``ValueError`` for what is no URL of a server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(f"{url!r} is no URL of a server")
    return checked_host(parts.hostname), parts


def checked_host(name: str) -> str:
    """Returns ``name``. Raises ``ValueError`` where no host can be called so."""
    try:
        name.encode("idna")  # as every connection does
    except UnicodeError as error:
        raise ValueError(f"{name!r} is no URL of a server, nor of its host: {error}") from error
    return name


class NotConnectedError(Exception):
    """No connection came about: nothing was sent."""


class BrokenError(ConnectionError):
    """The connection ended, or brought what is no answer, before the answer was complete."""


class HttpAnswer(NamedTuple):
    """What came back."""

    status: int
    content: bytes
    retry_after: str = ""
    """What the header ``Retry-After`` says."""


@dataclass(frozen=True, slots=True)
class HttpServer:
    """Whom to call."""

    host: str
    port: int
    authority: str
    """As the server calls itself in a request."""
    folder: str = ""
    """What all paths there begin with."""
    tls: TlsSource | None = None
    name: str | None = None
    """What its certificate has to name, where that is not ``host``."""

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

    def message(self, method: str, target: str, headers: dict[str, str], content: bytes | None) -> bytes:
        """Returns a request. ``target``: a path that may have a query behind it.

        Raises:
            ValueError: a header is more than one line.
        """
        path, mark, query = target.partition("?")
        length = {} if content is None else {"Content-Length": str(len(content))}
        lines = [
            f"{method} {self.folder}{quote(path, safe=_PATH)}{mark}{query} HTTP/1.1",
            *(f"{name}: {value}" for name, value in {"Host": self.authority, **headers, **length}.items()),
        ]
        text = "\r\n".join(lines)
        if text.count("\n") != len(lines) - 1 or text.count("\r") != len(lines) - 1:
            raise ValueError("a header has to be one line")
        return text.encode() + b"\r\n\r\n" + (content or b"")


@dataclass(slots=True)
class HttpCalls:
    """Calls of one ``server``, ``most`` at a time; others wait. Use from one event loop."""

    server: HttpServer
    most: int
    idle: float = IDLE_SECONDS
    _slots: asyncio.Semaphore = field(init=False)
    _idle: "dict[_Connection, float]" = field(default_factory=dict, init=False)
    """Since when each has had no call; the one that was used last comes last, and is used next."""
    _sweeping: asyncio.TimerHandle | None = field(default=None, init=False)
    _is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(self.most)

    async def call(self, message: bytes, *, seconds: float, is_repeatable: bool = False) -> HttpAnswer:
        """Returns the answer to ``message``.

        A server may end a kept connection just when something is sent on it: what ``is_repeatable`` is sent
        once more then.

        Raises:
            NotConnectedError: nothing was sent.
            OSError: no complete answer came in so many ``seconds``; whether the server has acted is unknown.
        """
        connection = None
        try:
            async with asyncio.timeout(seconds), self._slots:
                if connection := self._kept():
                    try:
                        return await self._call_on(connection, message)
                    except BrokenError:
                        if not is_repeatable:
                            raise
                connection = await self._connect()
                return await self._call_on(connection, message)
        except TimeoutError as error:
            if connection is None:
                raise NotConnectedError(f"no connection within {seconds:g} s") from error
            raise

    def close(self) -> None:
        """Ends the connections that are kept; those of calls under way end with them."""
        self._is_closed = True
        if self._sweeping:
            self._sweeping.cancel()
        for connection in [*self._idle]:
            connection.close()
        self._idle.clear()

    def _kept(self) -> "_Connection | None":
        """Returns the connection that was used last. The API server looks at the certificate of one at each
        call: from before it was renewed none is used any more."""
        tls = self.server.tls and self.server.tls()
        while self._idle:
            connection = self._idle.popitem()[0]
            if connection.tls is tls:
                return connection
            connection.close()
        return None

    async def _call_on(self, connection: "_Connection", message: bytes) -> HttpAnswer:
        try:
            return await connection.call(message)
        finally:
            if connection.is_reusable and not self._is_closed:
                self._keep(connection)
            else:
                connection.close()

    async def _connect(self) -> "_Connection":
        try:
            return await self._opened(await self._reached())
        except OSError as error:
            raise NotConnectedError(f"{type(error).__name__}: {error}") from error

    async def _reached(self) -> socket.socket:
        """asyncio itself tries addresses so, too, but leaves a socket open where the call is given up.

        This one forgets that it is given up while it ends the attempts at other addresses.
        """
        addresses = await _addresses(self.server.host, self.server.port)
        task = asyncio.current_task()
        given_up = task.cancelling() if task else 0
        reached = await aiohappyeyeballs.start_connection(
            addresses, happy_eyeballs_delay=NEXT_ADDRESS_SECONDS
        )
        if task and task.cancelling() > given_up:
            reached.close()
            raise asyncio.CancelledError
        return reached

    async def _opened(self, reached: socket.socket) -> "_Connection":
        server = self.server
        tls = server.tls and server.tls()
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: _Connection(self._lost, tls),
            sock=reached,
            ssl=tls,
            server_hostname=(server.name or server.host) if tls else None,
        )
        return connection

    def _lost(self, connection: "_Connection") -> None:
        self._idle.pop(connection, None)

    def _keep(self, connection: "_Connection") -> None:
        loop = asyncio.get_running_loop()
        self._idle[connection] = loop.time()
        if self._sweeping is None:
            self._sweeping = loop.call_later(self.idle, self._sweep)

    def _sweep(self) -> None:
        """Ends what nobody has used for long, and looks again when the next one may be due."""
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
    """Without a thread where ``host`` is an address by itself: it mostly is."""
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class _Connection(asyncio.Protocol):
    """One call at a time. Its parser calls the methods that are named as in ``httptools``."""

    def __init__(self, lost: "Callable[[_Connection], None]", tls: ssl.SSLContext | None) -> None:
        self.tls = tls
        """By which it was made."""
        self._lost = lost
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[HttpAnswer] | None = None
        self._parts: list[bytes] = []
        self._has_headers = self._says_length = False
        self._retry_after = ""
        self.is_reusable = False
        """Whether the last answer was complete and the server goes on."""

    async def call(self, message: bytes) -> HttpAnswer:
        """Raises ``NotConnectedError`` or ``BrokenError``."""
        if self._transport is None:
            raise NotConnectedError("the server has ended the connection")
        self._answer = asyncio.get_running_loop().create_future()
        self._parts, self._has_headers, self.is_reusable = [], False, False
        self._transport.write(message)
        try:
            return await self._answer
        finally:
            self._answer = None

    def close(self) -> None:
        """Without waiting for the other side: nothing is under way that anybody waits for."""
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
            self._break(f"no answer of HTTP/1.1: {error.__context__ or error}")

    def eof_received(self) -> None:
        """An answer that does not say how long it is ends with the connection: those of some proxies.

        From now on nobody is to send anything on it: by TLS it is lost only some steps later.
        """
        if self._has_headers and not self._says_length:
            self.on_message_complete()
        self._break("the server has ended the connection")

    def connection_lost(self, exc: Exception | None) -> None:
        self._break(f"the server has ended the connection{f': {exc}' if exc else ''}")

    # httptools

    def on_message_begin(self) -> None:
        if self._answer is None or self._answer.done():
            raise BrokenError("an answer that nobody has asked for")
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
        if status < HTTPStatus.OK:  # the answer itself is still to come
            self._has_headers = False
        elif self._answer and not self._answer.done():
            self.is_reusable = self._parser.should_keep_alive()
            self._answer.set_result(HttpAnswer(status, b"".join(self._parts), self._retry_after))
            self._parts = []  # else a page of a list would be kept as long as the connection

    def _break(self, why: str) -> None:
        self.is_reusable = False
        if self._answer and not self._answer.done():
            self._answer.set_exception(BrokenError(why))
        self.close()
        self._lost(self)
