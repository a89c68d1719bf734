"""The socket that an application is served on: TLS, timeouts, and limits on connections."""

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
from gpushare_extender.transport.http2 import Http2Requests, Http2Service
from gpushare_extender.transport.partial_requests import PartialRequestBudget
from gpushare_extender.transport.tls import ServerTls

PROTOCOLS = (HTTP2, "http/1.1")
"""Offered by ALPN where there is an ``Http2Service``."""
HANDSHAKE_SECONDS = 5.0
MAX_AUTHENTICATED = 512
"""Connections with a valid client certificate. A burst of binds over HTTP/1.1 takes one for each bind."""
MAX_UNAUTHENTICATED = 128
"""Connections without a certificate yet; beyond that the oldest is dropped. Together with the authenticated
ones and those to the API server they stay below the 1024 files that a container may open by default."""
CLOSE_SECONDS = 1.0
"""For clients to close their side, once all responses are sent."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Seconds, and numbers of connections."""

    timeouts: Timeouts = field(default_factory=Timeouts)
    handshake: float = HANDSHAKE_SECONDS
    authenticated: int = MAX_AUTHENTICATED
    unauthenticated: int = MAX_UNAUTHENTICATED
    pause: float = 0.0
    """Between two connections: bounds the cost of handshakes with unknown clients."""


@dataclass(slots=True)
class Listener:
    """Accepts connections; ``choose`` makes the reader of requests for the protocol agreed upon by ALPN.

    A connection counts as authenticated once its client certificate was checked; where none is demanded, once
    a request has come in full. Such a connection is dropped only for another one, and only while it is idle.
    """

    choose: Callable[[Connection, str], asyncio.Protocol]
    log: RareLog
    budget: PartialRequestBudget
    tls: ServerTls | None = None
    limits: ListenerLimits = field(default_factory=ListenerLimits)
    _unauthenticated: dict[Connection, "asyncio.Task[None] | None"] = field(default_factory=dict, init=False)
    """Oldest first; with the task of its TLS handshake while that is under way."""
    _authenticated: dict[Connection, None] = field(default_factory=dict, init=False)
    """Longest unused first."""

    def close(self) -> None:
        """Drops the connections that are not authenticated."""
        for connection in list(self._unauthenticated):
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
                # Earlier connections get their turn: a queue of unknown clients must not starve them.
                await asyncio.sleep(self.limits.pause)

    # Acceptor

    def made(self, connection: Connection) -> None:
        if self.tls and self.tls.files.demands_certificate:
            self._add_authenticated(connection)

    def used(self, connection: Connection) -> None:
        self._add_authenticated(connection)

    def lost(self, connection: Connection) -> None:
        self._unauthenticated.pop(connection, None)
        self._authenticated.pop(connection, None)

    # Connections

    def _add_authenticated(self, connection: Connection) -> None:
        self.lost(connection)
        self._authenticated[connection] = None
        if len(self._authenticated) > self.limits.authenticated:
            dropped = next((idle for idle in self._authenticated if idle.is_idle), connection)
            self.log.warning("connection dropped, %d others are open", self.limits.authenticated)
            self.lost(dropped)
            dropped.abort()

    def _admit(self, incoming: socket.socket) -> None:
        if len(self._unauthenticated) >= self.limits.unauthenticated:
            self._drop(next(iter(self._unauthenticated)))
        connection = Connection(self.choose, self, self.limits.timeouts, self.budget)
        starting = asyncio.create_task(self._start(incoming, connection))
        starting.add_done_callback(lambda _: None if connection.is_open else incoming.close())
        self._unauthenticated[connection] = starting

    def _drop(self, connection: Connection) -> None:
        starting = self._unauthenticated.pop(connection)
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
        if connection in self._unauthenticated:
            self._unauthenticated[connection] = None


def _send_at_once(accepted: socket.socket) -> None:
    """A response must not wait for the acknowledgement of the one before, up to 40 ms.

    asyncio sets this only for sockets whose protocol Python knows to be TCP, and not for accepted ones. The
    connection may have ended already."""
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
) -> "ListeningPort":
    """Serves ``application`` until the port is closed and drained.

    ``drain``: seconds for the responses to requests that have come by then. ``http2``: serves clients that
    agree upon HTTP/2 in their handshake.

    Raises:
        OSError: the address is not available.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    log = RareLog(_log, time.monotonic)
    limits = limits or ListenerLimits()
    budget = PartialRequestBudget.for_requests(http2.max_request if http2 else 0, log)
    with contextlib.ExitStack() as stack:
        bound = stack.enter_context(
            socket.create_server((host, port), family=family, backlog=MAX_UNAUTHENTICATED)
        )
        bound.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        runner = web.AppRunner(
            application, access_log=None, keepalive_timeout=KEEP_ALIVE, shutdown_timeout=drain, logger=log
        )
        await runner.setup()
        protocols = _Protocols(cast("web.Server", runner.server), http2, limits.timeouts, budget)
        listener = Listener(protocols.choose, log, budget, tls, limits)
        stack.pop_all()
    return ListeningPort(
        bound, listener, protocols, runner, drain, asyncio.create_task(listener.accept(bound))
    )


@dataclass(frozen=True, slots=True)
class ListeningPort:
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
        """Takes no more connections, and closes the socket: the kernel would go on to connect clients that
        then wait in vain while the port is drained, and a kube-scheduler that waits schedules nothing."""
        self._accepting.cancel()
        await asyncio.wait({self._accepting})
        self._bound.close()
        self._listener.close()

    async def drain(self) -> None:
        """Takes no more requests, and returns when those that have come have a response, or their time is
        over."""
        await asyncio.gather(self._protocols.drain(self._seconds), self._runner.cleanup())


@dataclass(frozen=True, slots=True)
class _Protocols:
    """``http1`` makes the reader of requests of one connection."""

    http1: Callable[[], asyncio.Protocol]
    http2: Http2Service | None
    timeouts: Timeouts
    budget: PartialRequestBudget
    _multiplexed: "weakref.WeakSet[Http2Requests]" = field(default_factory=weakref.WeakSet)

    def choose(self, connection: Connection, agreed: str) -> asyncio.Protocol:
        if self.http2 is None or agreed != HTTP2:
            return self.http1()
        requests = Http2Requests(self.http2, connection, self.timeouts, self.budget)
        self._multiplexed.add(requests)
        return requests

    async def drain(self, seconds: float) -> None:
        """Returns when the HTTP/2 connections have ended. Their requests have so many seconds; clients that
        do not close their side have ``CLOSE_SECONDS``, so that idle ones do not use up the time of all."""
        left = [requests for requests in self._multiplexed if not requests.over.is_set()]
        for requests in left:
            requests.drain()
        await _all_set([requests.ended for requests in left], seconds)
        for requests in left:
            requests.end()
        await _all_set([requests.over for requests in left], CLOSE_SECONDS)
        for requests in left:
            if not requests.over.is_set():
                requests.abort()


async def _all_set(events: Iterable[asyncio.Event], seconds: float) -> None:
    """Returns when all events are set, or after so many seconds."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            for event in events:
                await event.wait()
