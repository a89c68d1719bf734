"""The health port of a program: liveness, readiness and metrics by GET, one request a connection.

Whoever reaches it may ask, so nothing that a caller does or leaves undone keeps the next one from an answer.
Written by hand: an HTTP framework would cost the plugin 2 MB of its 64.
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
from gpushare_core.process.metrics import CONTENT_TYPE, exposition

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
BACKLOG = 512
"""Connections that the kernel keeps until they are accepted, none of them a file of ours. One that finds no
room there tries again after a second, and behind more of them one would wait as long: the kubelet may not."""
RETRY_SECONDS = 1.0
METRICS_SECONDS = 0.25
"""For so long figures are not looked up anew."""
END = b"\r\n\r\n"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered, as a whole."""

    content: bytes
    status: int = HTTPStatus.OK
    content_type: str = JSON


Page = Callable[[], Awaitable[Answer]]
"""Returns what is answered at a path."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Connections are far fewer than the 1024 files that a container may have open by default: the process
    needs others for its own connections."""

    request: float = 2.0
    """Seconds in which a request has to arrive, from the first byte to the last."""
    answer: float = 2.0
    """Seconds in which its answer has to be read."""
    head: int = 8192
    """Bytes of a request."""
    unanswered: int = 64
    """Connections whose request has not been answered; one more and the oldest is dropped."""
    unread: int = 16
    """Connections whose answer has not been read; one more and the oldest is dropped."""


LIMITS = Limits()


@dataclass(slots=True)
class MetricsPage:
    """What Prometheus reads. To make it costs far more than to send it, so callers in great number are given
    the same one for a moment."""

    registry: CollectorRegistry
    clock: Callable[[], float] = time.monotonic
    _made: float = float("-inf")
    _answer: Answer = Answer(b"", content_type=CONTENT_TYPE)

    async def __call__(self) -> Answer:
        now = self.clock()
        if now - self._made >= METRICS_SECONDS:
            self._answer = Answer(exposition(self.registry), content_type=CONTENT_TYPE)
            self._made = now
        return self._answer


class HealthPort:
    """Answers ``pages``, by their paths, from ``open`` to ``close``, or while it is entered.

    Listens on all addresses of both families unless ``host`` is given: the kubelet and Prometheus ask on the
    pod's.
    """

    def __init__(
        self, port: int, pages: Mapping[str, Page], *, host: str | None = None, limits: Limits = LIMITS
    ) -> None:
        self._address = host, port
        self._pages = pages
        self._log = RareLog(_log, time.monotonic)
        self.limits = limits
        self.unanswered = _Places(limits.unanswered, "have not asked yet", self._log)
        self.unread = _Places(limits.unread, "have not read their answer", self._log)

    async def __aenter__(self) -> "HealthPort":
        self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def open(self) -> None:
        """Begins to answer.

        Raises:
            OSError: the address cannot be had.
        """
        self._listening = _listen(*self._address)
        self._accepting = asyncio.create_task(self._accept(), name="health port")

    async def close(self) -> None:
        """Takes no more connections, and drops those that are open."""
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._listening.close()
        self.unanswered.clear()
        self.unread.clear()

    @property
    def port(self) -> int:
        """The port in use, also where 0 was asked for."""
        port: int = self._listening.getsockname()[1]
        return port

    async def answer(self, path: str) -> Answer:
        """A defect of a page fails its probe, with the reason in the log."""
        page = self._pages.get(path)
        if page is None:
            return Answer(f"ask for {' or '.join(self._pages)}".encode(), HTTPStatus.NOT_FOUND, TEXT)
        try:
            return await page()
        except Exception:
            self._log.exception("cannot answer %s", path)
            return Answer(b"internal error: see the log", HTTPStatus.INTERNAL_SERVER_ERROR, TEXT)

    async def _accept(self) -> None:
        """One after the other, and each is heard before the next ones are: a queue of strangers must not oust
        one that asks at once."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                incoming, _ = await loop.sock_accept(self._listening)
                await loop.connect_accepted_socket(lambda: _Connection(self), incoming)
            except OSError as error:
                self._log.warning("cannot accept connections: %s", error)
                await asyncio.sleep(RETRY_SECONDS)


class _Connection(asyncio.Protocol):
    """A request, its answer, the end; whatever else comes is not read."""

    def __init__(self, port: HealthPort) -> None:
        self._port = port
        self._head = bytearray()
        self._deadline = Deadline(self.drop)
        self._transport = asyncio.Transport()
        """Until the connection is there: one that nobody uses."""
        self._answering: asyncio.Task[None] | None = None

    def drop(self) -> None:
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._deadline.set(self._port.limits.request)
        self._port.unanswered.take(self)

    def data_received(self, data: bytes) -> None:
        if self._answering:
            return
        self._head += data
        head, end, _ = self._head.partition(END)
        if len(head) > self._port.limits.head:
            self.drop()
        elif end:
            self._deadline.set(self._port.limits.answer)
            self._answering = asyncio.create_task(self._answer(bytes(head)))

    def eof_received(self) -> bool:
        """Returns whether the connection stays open: who has asked may say no more."""
        return self._answering is not None

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's own signature
        self._deadline.close()
        if self._answering:
            self._answering.cancel()
        self._port.unanswered.leave(self)
        self._port.unread.leave(self)

    async def _answer(self, head: bytes) -> None:
        method, path = _asked(head)
        answer = await self._port.answer(path)
        self._transport.write(_response(answer, with_content=method != "HEAD"))
        self._transport.close()
        self._port.unanswered.leave(self)
        if self._transport.get_write_buffer_size():
            self._port.unread.take(self)


class _Places:
    """Connections in the same state, at most ``most``: one more and the oldest is dropped."""

    def __init__(self, most: int, state: str, log: RareLog) -> None:
        self._most = most
        self._state = state
        self._log = log
        self._taken: dict[_Connection, None] = {}
        """Oldest first."""

    def take(self, connection: _Connection) -> None:
        self._taken[connection] = None
        if len(self._taken) > self._most:
            self._log.warning("health port: %d other connections %s; one is dropped", self._most, self._state)
            self._drop(next(iter(self._taken)))

    def leave(self, connection: _Connection) -> None:
        self._taken.pop(connection, None)

    def clear(self) -> None:
        for connection in list(self._taken):
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self.leave(connection)
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


def _asked(head: bytes) -> tuple[str, str]:
    """Returns method and path of a request; an empty path where another method than GET or HEAD is asked
    for."""
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    target = rest.partition(" ")[0].partition("?")[0]
    return method, target if method in {"GET", "HEAD"} else ""


def _response(answer: Answer, *, with_content: bool) -> bytes:
    head = (
        f"HTTP/1.1 {answer.status} {HTTPStatus(answer.status).phrase}\r\n"
        f"Content-Type: {answer.content_type}\r\n"
        f"Content-Length: {len(answer.content)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + (answer.content if with_content else b"")
