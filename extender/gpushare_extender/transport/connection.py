"""One connection: how far its request is, and how long that may take.

aiohttp itself keeps half-sent requests and connections without a request for ever.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from aiohttp import web

from gpushare_core.process.deadline import Deadline
from gpushare_extender.transport.unfinished import PartialRequestBudget

KEEP_ALIVE = 180.0
"""Seconds. Longer than the scheduler's own 90, so that it never sends into a connection just closed here."""
HTTP2 = "h2"
"""As it is called in a handshake (ALPN)."""
READ_SECONDS = 10.0
"""For one request, from its first byte to its last."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. ``idle``: until a request begins, the writing of the answer before it included."""

    read: float = READ_SECONDS
    idle: float = KEEP_ALIVE


def is_encrypted(transport: asyncio.BaseTransport) -> bool:
    """Returns whether there is TLS, which is mutual wherever kube-scheduler calls."""
    return transport.get_extra_info("ssl_object") is not None


def port_of(transport: asyncio.BaseTransport) -> int:
    """Returns where the connection came in; 0 where that is not known any more."""
    address = transport.get_extra_info("sockname")
    return int(address[1]) if address else 0


class Progress(Enum):
    """Of the requests on one connection."""

    IDLE = auto()
    READING = auto()
    ANSWERING = auto()


class Owner(Protocol):
    """Who accepted the connections."""

    def made(self, connection: "Connection") -> None:
        """It came about; where a certificate is demanded of the other side, that was good."""

    def used(self, connection: "Connection") -> None:
        """A request has come on it in full."""

    def lost(self, connection: "Connection") -> None:
        """It has ended."""


class Connection(asyncio.Protocol):
    """Passes everything on to the protocol that it speaks, and breaks off when that takes too long."""

    def __init__(
        self,
        choose: "Callable[[Connection, str], asyncio.Protocol]",
        owner: Owner,
        patience: Timeouts,
        unfinished: PartialRequestBudget,
    ) -> None:
        """``choose`` returns what reads requests, by the protocol that was agreed upon in the handshake; an
        empty text where none was."""
        self._choose = choose
        self._handler = asyncio.Protocol()
        """Until the connection is there: one that does nothing."""
        self._is_multiplexed = False
        """Whether the handler itself watches over its requests, of which there are several at a time."""
        self._owner = owner
        self._patience = patience
        self._unfinished = unfinished
        self._held = 0
        """Bytes that have come since the last whole request."""
        self._transport: asyncio.Transport | None = None
        self._deadline = Deadline(self.abort)
        self._progress = Progress.IDLE
        self._is_pipelined = False
        """Whether anything came while a request was being answered."""

    @property
    def is_open(self) -> bool:
        """Whether the connection came about, a handshake included."""
        return self._transport is not None

    @property
    def is_idle(self) -> bool:
        """Whether no request is on it."""
        return self._progress is Progress.IDLE

    def abort(self) -> None:
        if self._transport:
            self._transport.abort()

    def make_room(self, _: int) -> None:
        """Gives up the request that has not come in full; nothing can be said on its connection before."""
        self.abort()

    # How far a request is

    def request_begun(self) -> None:
        """The headers of a request are being looked at: it may have come together with the one before."""
        if self._progress is not Progress.READING:
            self._begin_reading()

    def request_read(self) -> None:
        """The request has come in full, and has all the time it wants."""
        self._progress, self._is_pipelined = Progress.ANSWERING, False
        self._deadline.clear()
        self._hold(0)
        self._owner.used(self)

    def request_answered(self) -> None:
        if self._is_pipelined:
            self._begin_reading()
        else:
            self._progress = Progress.IDLE
            self._deadline.set(self._patience.idle)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        encrypted = transport.get_extra_info("ssl_object")
        agreed = (encrypted.selected_alpn_protocol() or "") if encrypted else ""
        self._handler, self._is_multiplexed = self._choose(self, agreed), agreed == HTTP2
        self._deadline.set(self._patience.idle)
        self._handler.connection_made(transport)
        self._owner.made(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_multiplexed:
            if self._progress is Progress.IDLE:
                self._begin_reading()
            self._is_pipelined = self._progress is Progress.ANSWERING
            self._hold(self._held + len(data))
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.close()
        self._hold(0)
        self._owner.lost(self)
        self._handler.connection_lost(exc)

    def pause_writing(self) -> None:
        self._handler.pause_writing()

    def resume_writing(self) -> None:
        self._handler.resume_writing()

    def _hold(self, size: int) -> None:
        """With several requests at a time their handler sees to it."""
        self._held = size
        if size:
            self._unfinished.hold(self, 0, size)
        else:
            self._unfinished.release(self, 0)

    def _begin_reading(self) -> None:
        self._progress = Progress.READING
        self._deadline.set(self._patience.read)


@web.middleware
async def read_in_time(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Reads the whole request before it is handled, and tells its connection how far it is.

    Every application that is listened for has it outermost but for those that only change the answer.
    """
    protocol = request.transport.get_protocol() if request.transport else None
    connection = protocol if isinstance(protocol, Connection) else None
    if connection:
        connection.request_begun()
    try:
        await request.read()
    except (ConnectionError, web.RequestPayloadError) as error:
        raise web.HTTPBadRequest(reason="the request has not come in full") from error
    if connection is None:
        return await handler(request)
    connection.request_read()
    try:
        return await handler(request)
    finally:
        connection.request_answered()
