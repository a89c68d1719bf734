"""The socket that an application is served on: mutual TLS, deadlines, and limits to connections."""

import asyncio
import contextlib
import logging
import socket
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import cast

from aiohttp import web

from gpushare_core.process.log import RareLog
from gpushare_extender.transport.connection import HTTP2, KEEP_ALIVE, Connection, Timeouts
from gpushare_extender.transport.exchange import Answering
from gpushare_extender.transport.http2 import Http2Requests, StreamLimits
from gpushare_extender.transport.tls import ServerTls
from gpushare_extender.transport.unfinished import PartialRequestBudget

PROTOCOLS = (HTTP2, "http/1.1")
"""That are spoken where there is an ``Http2Service``."""
HANDSHAKE_SECONDS = 5.0
MAX_AUTHENTICATED = 512
"""Connections with a good certificate. A burst of binds takes one for each."""
MAX_UNAUTHENTICATED = 128
"""Connections that have shown nothing yet; one more and the oldest is dropped. With the proven ones, and
those to the API server, they stay below the 1024 files that a container may have open by default."""
LAST_SECONDS = 1.0
"""For the last answers to go out, once all are given."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Http2Service:
    """``largest_request`` is in bytes."""

    answering: Answering
    largest_request: int


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Replaced in tests. Seconds and numbers of connections."""

    patience: Timeouts = field(default_factory=Timeouts)
    handshake: float = HANDSHAKE_SECONDS
    proven: int = MAX_AUTHENTICATED
    unproven: int = MAX_UNAUTHENTICATED
    pause: float = 0.0
    """Between two connections: it bounds what the handshakes of strangers cost."""


@dataclass(slots=True)
class Listener:
    """Accepts connections; ``choose`` makes what reads the requests of each, by the agreed protocol.

    A connection is proven by its client's certificate; where none is demanded, by a request that came in
    full. One that is proven is dropped for another proven one only, and only while it is idle.
    """

    choose: Callable[[Connection, str], asyncio.Protocol]
    log: RareLog
    unfinished: PartialRequestBudget
    tls: ServerTls | None = None
    limits: ListenerLimits = field(default_factory=ListenerLimits)
    _unproven: dict[Connection, "asyncio.Task[None] | None"] = field(default_factory=dict, init=False)
    """Oldest first; with the task of those that are still shaking hands."""
    _proven: dict[Connection, None] = field(default_factory=dict, init=False)
    """Longest unused first."""

    def close(self) -> None:
        """Drops the connections that have shown nothing."""
        for connection in list(self._unproven):
            self._drop(connection)

    async def accept(self, listening: socket.socket) -> None:
        """Accepts from ``listening`` until it is cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                incoming, _ = await loop.sock_accept(listening)
            except OSError as error:
                self.log.warning("cannot accept connections: %s", error)
                await asyncio.sleep(1.0)
            else:
                _send_at_once(incoming)
                self._admit(incoming)
                # Those before it get on, too: a queue of strangers must not oust them.
                await asyncio.sleep(self.limits.pause)

    # What connections tell

    def made(self, connection: Connection) -> None:
        if self.tls and self.tls.files.demands_certificate:
            self._prove(connection)

    def used(self, connection: Connection) -> None:
        self._prove(connection)

    def lost(self, connection: Connection) -> None:
        self._unproven.pop(connection, None)
        self._proven.pop(connection, None)

    # Upkeep

    def _prove(self, connection: Connection) -> None:
        self.lost(connection)
        self._proven[connection] = None
        if len(self._proven) > self.limits.proven:
            dropped = next((each for each in self._proven if each.is_idle), connection)
            self.log.warning("connection dropped, %d others are open", self.limits.proven)
            self.lost(dropped)
            dropped.abort()

    def _admit(self, incoming: socket.socket) -> None:
        if len(self._unproven) >= self.limits.unproven:
            self._drop(next(iter(self._unproven)))
        connection = Connection(self.choose, self, self.limits.patience, self.unfinished)
        starting = asyncio.create_task(self._start(incoming, connection))
        starting.add_done_callback(lambda _: None if connection.is_open else incoming.close())
        self._unproven[connection] = starting

    def _drop(self, connection: Connection) -> None:
        starting = self._unproven.pop(connection)
        if starting:
            starting.cancel()
        connection.abort()

    async def _start(self, incoming: socket.socket, connection: Connection) -> None:
        context = self.tls.context() if self.tls else None
        if self.tls and context is None:
            self.lost(connection)
            return
        timeout = self.limits.handshake if context else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, incoming, ssl=context, ssl_handshake_timeout=timeout
            )
        except OSError as error:
            self.lost(connection)
            self.log.warning("connection refused: %s", error)
        if connection in self._unproven:
            self._unproven[connection] = None


def _send_at_once(accepted: socket.socket) -> None:
    """An answer must not wait until the client has acknowledged the one before, up to 40 ms.

    asyncio does the same, but not for a socket of which Python does not know that it is one of TCP, and of an
    accepted one it does not. It may have ended already."""
    with contextlib.suppress(OSError):
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


async def open_port(
    application: web.Application,
    *,
    host: str,
    port: int,
    tls: ServerTls | None = None,
    drain: float,
    limits: ListenerLimits | None = None,
    http2: Http2Service | None = None,
) -> "OpenPort":
    """Serves ``application`` until it is closed and drained.

    ``drain`` is how many seconds the answers to requests that have come may take then. ``http2``: for clients
    that agree upon it in their handshake.

    Raises:
        OSError: the address cannot be had.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    log = RareLog(_log, time.monotonic)
    limits = limits or ListenerLimits()
    unfinished = PartialRequestBudget.for_requests(http2.largest_request if http2 else 0, log)
    with contextlib.ExitStack() as stack:
        bound = stack.enter_context(
            socket.create_server((host, port), family=family, backlog=MAX_UNAUTHENTICATED)
        )
        bound.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        runner = await _set_up(application, drain, log)
        protocols = _Protocols(cast("web.Server", runner.server), http2, limits.patience, unfinished)
        listener = Listener(protocols.choose, log, unfinished, tls, limits)
        stack.pop_all()
    return OpenPort(bound, listener, protocols, runner, drain, asyncio.create_task(listener.accept(bound)))


async def _set_up(application: web.Application, drain: float, log: RareLog) -> web.AppRunner:
    runner = web.AppRunner(
        application, access_log=None, keepalive_timeout=KEEP_ALIVE, shutdown_timeout=drain, logger=log
    )
    await runner.setup()
    return runner


@dataclass(frozen=True, slots=True)
class OpenPort:
    """Where requests are taken."""

    _bound: socket.socket
    _listener: Listener
    _protocols: "_Protocols"
    _runner: web.AppRunner
    _seconds: float
    _accepting: "asyncio.Task[None]"

    @property
    def number(self) -> int:
        port: int = self._bound.getsockname()[1]
        return port

    async def close(self) -> None:
        """Takes no more connections. The kernel would go on to connect callers, and let them wait for nothing
        as long as others are answered: kube-scheduler calls one extender at a time, and schedules nothing
        meanwhile."""
        self._accepting.cancel()
        await asyncio.wait({self._accepting})
        self._bound.close()
        self._listener.close()

    async def drain(self) -> None:
        """Takes no more requests, and returns when those that have come are answered, or have had their
        time."""
        await asyncio.gather(self._protocols.drain(self._seconds), self._runner.cleanup())


@dataclass(frozen=True, slots=True)
class _Protocols:
    """``http1`` makes what reads the requests of one connection."""

    http1: Callable[[], asyncio.Protocol]
    http2: Http2Service | None
    patience: Timeouts
    unfinished: PartialRequestBudget
    _multiplexed: "weakref.WeakSet[Http2Requests]" = field(default_factory=weakref.WeakSet)

    def choose(self, connection: Connection, agreed: str) -> asyncio.Protocol:
        if self.http2 is None or agreed != HTTP2:
            return self.http1()
        limits = StreamLimits(
            read=self.patience.read, write=self.patience.idle, largest=self.http2.largest_request
        )
        requests = Http2Requests(self.http2.answering, connection, limits, self.unfinished)
        self._multiplexed.add(requests)
        return requests

    async def drain(self, seconds: float) -> None:
        """Returns when the connections of HTTP/2 have ended. Their requests have so many seconds; a client
        that does not close its side, ``LAST_SECONDS``: an idle one would use up the time of all."""
        left = [each for each in self._multiplexed if not each.over.is_set()]
        for each in left:
            each.drain()
        await _all_set([each.ended for each in left], seconds)
        for each in left:
            each.end()
        await _all_set([each.over for each in left], LAST_SECONDS)
        for each in left:
            if not each.over.is_set():
                each.abort()


async def _all_set(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Returns when all of them are set, at the latest after so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
