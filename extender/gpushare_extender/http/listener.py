"""The socket that an application is served on: mutual TLS, deadlines, and limits to connections."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from gpushare_extender.http.connection import KEEP_ALIVE, Connection, Patience
from gpushare_extender.http.tls import ServerTls

HANDSHAKE_SECONDS = 5.0
MOST_PROVEN = 512
"""Connections with a good certificate. A burst of binds takes one for each."""
MOST_UNPROVEN = 128
"""Connections that have shown nothing yet; one more and the oldest is dropped. With the proven ones, and
those to the API server, they stay below the 1024 files that a container may have open by default."""
WARN_SECONDS = 60.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ListenerLimits:
    """Replaced in tests. Seconds and numbers of connections."""

    patience: Patience = field(default_factory=Patience)
    handshake: float = HANDSHAKE_SECONDS
    proven: int = MOST_PROVEN
    unproven: int = MOST_UNPROVEN


HEALTH_LIMITS = ListenerLimits(Patience(read=2.0, idle=2.0), proven=16, unproven=64)
"""Where everybody on the host may ask: a probe asks at once, on a connection of its own."""


class RareLog(logging.LoggerAdapter[logging.Logger]):
    """Logs at most one line a minute: who must not talk to us shall not fill the disk, either."""

    def __init__(self, logger: logging.Logger, clock: Callable[[], float]) -> None:
        super().__init__(logger, {})
        self._clock = clock
        self._last = float("-inf")

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        if self.isEnabledFor(level) and self._clock() - self._last >= WARN_SECONDS:
            self._last = self._clock()
            super().log(level, msg, *args, **kwargs)


@dataclass(slots=True)
class Listener:
    """Accepts connections for ``handlers``, which makes one protocol for each.

    A connection is proven by its client's certificate; without TLS, by a request that came in full. One that
    is proven is dropped for another proven one only, and only while it is idle.
    """

    handlers: Callable[[], asyncio.Protocol]
    log: RareLog
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
                self._admit(incoming)
                await asyncio.sleep(0)  # those before it get on, too: a queue of strangers must not oust them

    # What connections tell

    def made(self, connection: Connection) -> None:
        if self.tls:
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
        connection = Connection(self.handlers(), self, self.limits.patience)
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
    with socket.create_server((host, port), family=family, backlog=MOST_UNPROVEN) as bound:
        bound.setblocking(False)  # noqa: FBT003 - the standard library's own signature
        log = RareLog(_log, time.monotonic)
        runner = web.AppRunner(
            application, access_log=None, keepalive_timeout=KEEP_ALIVE, shutdown_timeout=drain, logger=log
        )
        await runner.setup()
        assert runner.server is not None
        listener = Listener(runner.server, log, tls, limits or ListenerLimits())
        try:
            async with _accepting(listener, bound):
                yield bound.getsockname()[1]
        finally:
            await runner.cleanup()


@contextlib.asynccontextmanager
async def _accepting(listener: Listener, bound: socket.socket) -> AsyncIterator[None]:
    accepting = asyncio.create_task(listener.accept(bound))
    try:
        yield
    finally:
        accepting.cancel()
        await asyncio.wait({accepting})
        listener.close()
