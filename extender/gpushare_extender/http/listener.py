"""The socket that an application is served on: mutual TLS, deadlines, and a limit to connections.

aiohttp's own sites keep half-sent requests and connections without a request for ever.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from aiohttp import web

from gpushare_extender.http.tls import ServerTls

KEEP_ALIVE = 180.0
"""Seconds. Longer than the scheduler's own 90, so that it never sends into a connection just closed here."""
READ_SECONDS = 10.0
"""For one request, from its first byte to its last."""
HANDSHAKE_SECONDS = 5.0
MOST_SERVED = 512
"""Connections that a request has come on. A burst of binds takes one for each."""
MOST_WAITING = 256
"""Connections that no request has come on yet; one more and the oldest is dropped."""
WARN_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Replaced in tests. Seconds and numbers of connections."""

    read: float = READ_SECONDS
    unused: float = KEEP_ALIVE
    handshake: float = HANDSHAKE_SECONDS
    served: int = MOST_SERVED
    waiting: int = MOST_WAITING


class Connection(asyncio.Protocol):
    """Passes everything on to aiohttp's protocol, and breaks off when a request takes too long to come."""

    def __init__(self, handler: asyncio.Protocol, listener: "Listener") -> None:
        self._handler = handler
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reading = False

    def request_read(self) -> None:
        """A request has come in full."""
        self._reading = False
        self._set_deadline(None)
        self._listener.has_served(self)

    @property
    def is_open(self) -> bool:
        """Whether the connection came about, a handshake included."""
        return self._transport is not None

    def abort(self) -> None:
        if self._transport:
            self._transport.abort()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._set_deadline(self._listener.limits.unused)
        self._handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if not self._reading:
            self._reading = True
            self._set_deadline(self._listener.limits.read)
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        self._listener.forget(self)
        self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def _set_deadline(self, seconds: float | None) -> None:
        if self._timer:
            self._timer.cancel()
        self._timer = None if seconds is None else asyncio.get_running_loop().call_later(seconds, self.abort)


@dataclass(slots=True)
class Listener:
    """Accepts connections for ``handlers``, which makes one protocol for each."""

    handlers: Callable[[], asyncio.Protocol]
    tls: ServerTls | None = None
    limits: ListenerLimits = field(default_factory=ListenerLimits)
    _waiting: dict[Connection, "asyncio.Task[None] | None"] = field(default_factory=dict, init=False)
    """Without a request so far, oldest first; with the task of those that are still shaking hands."""
    _served: set[Connection] = field(default_factory=set, init=False)
    _warned: float = field(default=-WARN_SECONDS, init=False)

    def has_served(self, connection: Connection) -> None:
        """A request has come on ``connection``."""
        if connection in self._waiting:
            del self._waiting[connection]
            self._served.add(connection)

    def forget(self, connection: Connection) -> None:
        self._waiting.pop(connection, None)
        self._served.discard(connection)

    def close(self) -> None:
        """Drops the connections that no request has come on."""
        for connection in list(self._waiting):
            self._drop(connection)

    async def accept(self, listening: socket.socket) -> None:
        """Accepts from ``listening`` until it is cancelled."""
        while True:
            try:
                incoming, _ = await asyncio.get_running_loop().sock_accept(listening)
            except OSError as error:
                self._warn("cannot accept connections", error)
                await asyncio.sleep(1.0)
            else:
                self._admit(incoming)

    def _admit(self, incoming: socket.socket) -> None:
        if len(self._served) >= self.limits.served:
            self._warn("connection refused", f"{len(self._served)} are open")
            incoming.close()
            return
        if len(self._waiting) >= self.limits.waiting:
            self._drop(next(iter(self._waiting)))
        connection = Connection(self.handlers(), self)
        starting = asyncio.create_task(self._start(incoming, connection))
        starting.add_done_callback(lambda _: None if connection.is_open else incoming.close())
        self._waiting[connection] = starting

    def _drop(self, connection: Connection) -> None:
        starting = self._waiting.pop(connection)
        if starting:
            starting.cancel()
        connection.abort()

    async def _start(self, incoming: socket.socket, connection: Connection) -> None:
        context = self.tls.context() if self.tls else None
        if self.tls and context is None:
            self.forget(connection)
            return
        timeout = self.limits.handshake if context else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, incoming, ssl=context, ssl_handshake_timeout=timeout
            )
        except OSError as error:
            self.forget(connection)
            self._warn("connection refused", error)
        if connection in self._waiting:
            self._waiting[connection] = None

    def _warn(self, what: str, why: object) -> None:
        """At most once a minute: who must not talk to us shall not fill the disk, either."""
        if time.monotonic() - self._warned >= WARN_SECONDS:
            self._warned = time.monotonic()
            _log.warning("%s: %s", what, why)


def request_read(request: web.Request) -> None:
    """``request`` has come in full: its connection has all the time it wants until the next one."""
    protocol = request.transport.get_protocol() if request.transport else None
    if isinstance(protocol, Connection):
        protocol.request_read()


@contextlib.asynccontextmanager
async def listening(
    application: web.Application,
    *,
    host: str,
    port: int,
    tls: ServerTls | None = None,
    drain: float,
    limits: ListenerLimits | None = None,
) -> AsyncIterator[int]:
    """Serves ``application``; at the end takes no more requests and answers those that have come.

    Yields the port. ``drain`` is how many seconds those answers may take.

    Raises:
        OSError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=MOST_WAITING) as bound:
        bound.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        runner = web.AppRunner(
            application, access_log=None, keepalive_timeout=KEEP_ALIVE, shutdown_timeout=drain
        )
        await runner.setup()
        assert runner.server is not None
        listener = Listener(runner.server, tls, limits or ListenerLimits())
        accepting = asyncio.create_task(listener.accept(bound))
        try:
            yield bound.getsockname()[1]
        finally:
            accepting.cancel()
            await asyncio.wait({accepting})
            listener.close()
            await runner.cleanup()
