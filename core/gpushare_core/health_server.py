"""The health server of plugin, operator and extender: probes and metrics by GET, one request a connection.

Anybody who reaches the port may ask, so nothing that a client does or leaves undone keeps the next one from a
response. Written by hand: an HTTP framework would cost the plugin 2 MB of its 64.
"""

import asyncio
import logging
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from prometheus_client import CollectorRegistry

from gpushare_core.process.deadline import Deadline
from gpushare_core.process.log import RareLog
from gpushare_core.process.metrics import CONTENT_TYPE, PATH, exposition
from gpushare_core.text.printable import printable

LIVENESS, READINESS = "/healthz", "/readyz"
JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
BACKLOG = 512
"""Connections that the kernel keeps until they are accepted; they are no open files of ours. A client that
finds no room tries again after a second, and behind a longer queue it would wait as long: too long for the
kubelet."""
RETRY_SECONDS = 1.0
METRICS_SECONDS = 0.25
"""For which figures are kept before they are read again."""
END = b"\r\n\r\n"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Response:
    """A response, as a whole."""

    content: bytes
    status: int = HTTPStatus.OK
    content_type: str = JSON


Page = Callable[[], Awaitable[Response]]
"""Returns the response at a path."""


class CannotServeError(Exception):
    """The program cannot serve from the start; the text says why and what to do, for people."""


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """Connections are far fewer than the 1024 files that a container may have open by default: the process
    needs files for its own connections."""

    request: float = 2.0
    """Seconds until a request has come as a whole."""
    response: float = 2.0
    """Seconds until its response has been read."""
    head: int = 8192
    """Bytes of a request."""
    unanswered: int = 64
    """Connections without a response so far; one more and the oldest is dropped."""
    unread: int = 16
    """Connections whose response has not been read; one more and the oldest is dropped."""


LIMITS = HealthLimits()


@dataclass(slots=True)
class MetricsPage:
    """What Prometheus reads. It costs far more to make than to send, so all clients get the same one for a
    moment."""

    registry: CollectorRegistry
    clock: Callable[[], float] = time.monotonic
    _made: float = float("-inf")
    _response: Response = Response(b"", content_type=CONTENT_TYPE)

    async def __call__(self) -> Response:
        now = self.clock()
        if now - self._made >= METRICS_SECONDS:
            self._response = Response(exposition(self.registry), content_type=CONTENT_TYPE)
            self._made = now
        return self._response


def health_pages(*, liveness: Page, readiness: Page, registry: CollectorRegistry) -> Mapping[str, Page]:
    """Returns the pages of a program by their paths."""
    return {LIVENESS: liveness, READINESS: readiness, PATH: MetricsPage(registry)}


def text_page(problem: Callable[[], str]) -> Page:
    """Returns a probe in words: 200 and "ok", or 503 and what ``problem`` says is wrong."""

    async def page() -> Response:
        wrong = problem()
        status = HTTPStatus.SERVICE_UNAVAILABLE if wrong else HTTPStatus.OK
        return Response(printable(wrong or "ok").encode(), status, TEXT)

    return page


class HealthServer:
    """Serves ``pages`` by their paths, from ``open`` to ``close``, or while it is entered.

    Listens on all addresses of both families unless ``host`` is given: the kubelet and Prometheus ask at the
    pod's address.
    """

    def __init__(
        self,
        port: int,
        pages: Mapping[str, Page],
        *,
        host: str | None = None,
        limits: HealthLimits = LIMITS,
    ) -> None:
        self._address = host, port
        self._pages = pages
        self._log = RareLog(_log, time.monotonic)
        self.limits = limits
        self.unanswered = _BoundedConnections(limits.unanswered, "have not asked yet", self._log)
        self.unread = _BoundedConnections(limits.unread, "have not read their answer", self._log)

    async def __aenter__(self) -> "HealthServer":
        """Raises ``CannotServeError`` where the port cannot be had."""
        try:
            self.open()
        except OSError as error:
            port = self._address[1]
            raise CannotServeError(
                f"cannot listen on port {port}: {error}; choose another --health-port"
            ) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def open(self) -> None:
        """Raises ``OSError`` where the address cannot be had."""
        self._listening = _listen(*self._address)
        self._accepting = asyncio.create_task(self._accept(), name="health port")

    async def close(self) -> None:
        """Accepts no more connections, and drops those that are open."""
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._listening.close()
        self.unanswered.clear()
        self.unread.clear()

    async def drain(self) -> None:
        """Nothing to wait for: every response has been sent by now."""

    @property
    def port(self) -> int:
        """The port in use, also where 0 was asked for."""
        port: int = self._listening.getsockname()[1]
        return port

    async def respond(self, path: str) -> Response:
        """A defect in a page fails its probe, with the reason in the log."""
        page = self._pages.get(path)
        if page is None:
            return Response(f"ask for {' or '.join(self._pages)}".encode(), HTTPStatus.NOT_FOUND, TEXT)
        try:
            return await page()
        except Exception:
            self._log.exception("cannot answer %s", path)
            return Response(b"internal error: see the log", HTTPStatus.INTERNAL_SERVER_ERROR, TEXT)

    async def _accept(self) -> None:
        """Accepts one connection after the other, and reads each before the next: a queue of strangers must
        not oust a client that asks at once."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                incoming, _ = await loop.sock_accept(self._listening)
                await loop.connect_accepted_socket(lambda: _ProbeConnection(self), incoming)
            except OSError as error:
                self._log.warning("cannot accept connections: %s", error)
                await asyncio.sleep(RETRY_SECONDS)


class _ProbeConnection(asyncio.Protocol):
    """One request and its response; whatever else comes is not read."""

    def __init__(self, server: HealthServer) -> None:
        self._server = server
        self._head = bytearray()
        self._deadline = Deadline(self.drop)
        self._transport = asyncio.Transport()
        """An unused one until the connection is made."""
        self._responding: asyncio.Task[None] | None = None

    def drop(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._deadline.set(self._server.limits.request)
        self._server.unanswered.add(self)

    def data_received(self, data: bytes) -> None:
        if self._responding:
            return
        self._head += data
        head, end, _ = self._head.partition(END)
        if len(head) > self._server.limits.head:
            self.drop()
        elif end:
            self._deadline.set(self._server.limits.response)
            self._responding = asyncio.create_task(self._respond(bytes(head)))

    def eof_received(self) -> bool:
        """Returns whether the connection stays open: a client that has asked may end its side."""
        return self._responding is not None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's own signature
        self._deadline.close()
        if self._responding:
            self._responding.cancel()
        self._server.unanswered.remove(self)
        self._server.unread.remove(self)

    async def _respond(self, head: bytes) -> None:
        method, path = _request_line(head)
        response = await self._server.respond(path)
        self._transport.write(_encoded(response, with_content=method != "HEAD"))
        self._transport.close()
        self._server.unanswered.remove(self)
        if self._transport.get_write_buffer_size():
            self._server.unread.add(self)


class _BoundedConnections:
    """Connections in the same state, at most ``size``: one more and the oldest is dropped."""

    def __init__(self, size: int, state: str, log: RareLog) -> None:
        self._size = size
        self._state = state
        self._log = log
        self._connections: dict[_ProbeConnection, None] = {}
        """Oldest first."""

    def add(self, connection: _ProbeConnection) -> None:
        self._connections[connection] = None
        if len(self._connections) > self._size:
            self._log.warning("health port: %d other connections %s; one is dropped", self._size, self._state)
            self._drop(next(iter(self._connections)))

    def remove(self, connection: _ProbeConnection) -> None:
        self._connections.pop(connection, None)

    def clear(self) -> None:
        for connection in list(self._connections):
            self._drop(connection)

    def _drop(self, connection: _ProbeConnection) -> None:
        self.remove(connection)
        connection.drop()


def _listen(host: str | None, port: int) -> socket.socket:
    if host is None and socket.has_dualstack_ipv6():
        listening = socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True
        )
    else:
        family = socket.AF_INET6 if ":" in (host or "") else socket.AF_INET
        listening = socket.create_server((host or "", port), family=family, backlog=BACKLOG)
    listening.setblocking(False)  # noqa: FBT003 - the standard library's own signature
    return listening


def _request_line(head: bytes) -> tuple[str, str]:
    """Returns method and path of a request; the path is empty for another method than GET or HEAD."""
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    target = rest.partition(" ")[0].partition("?")[0]
    return method, target if method in {"GET", "HEAD"} else ""


def _encoded(response: Response, *, with_content: bool) -> bytes:
    head = (
        f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}\r\n"
        f"Content-Type: {response.content_type}\r\n"
        f"Content-Length: {len(response.content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (response.content if with_content else b"")
