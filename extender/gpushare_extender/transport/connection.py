"""One connection: how far its request has come, and the deadlines for it.

aiohttp by itself keeps half-sent requests and idle connections for ever.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from aiohttp import typedefs, web

from gpushare_core.process.deadline import Deadline
from gpushare_extender.transport.partial_requests import PartialRequestBudget

KEEP_ALIVE = 180.0
"""Seconds. Longer than kube-scheduler's own 90, so that it never sends into a connection just closed here."""
HTTP2 = "h2"
"""Its name in a TLS handshake (ALPN)."""
READ_SECONDS = 10.0
"""For one request, from its first byte to its last."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. ``read``: from a request's first byte to its last. ``idle``: until the next request begins,
    including the time to write the previous response; that is also the time for an HTTP/2 response alone."""

    read: float = READ_SECONDS
    idle: float = KEEP_ALIVE


def is_encrypted(transport: asyncio.BaseTransport) -> bool:
    """Returns whether the connection uses TLS, which is mutual wherever kube-scheduler calls."""
    return transport.get_extra_info("ssl_object") is not None


def port_of(transport: asyncio.BaseTransport) -> int:
    """Returns the local port; 0 when the socket no longer tells."""
    address = transport.get_extra_info("sockname")
    return int(address[1]) if address else 0


class Progress(Enum):
    """Of the requests on one connection."""

    IDLE = auto()
    READING = auto()
    RESPONDING = auto()


class Acceptor(Protocol):
    """Accepts connections, and is told what becomes of each."""

    def made(self, connection: "Connection") -> None:
        """The connection is established; a client certificate, where one is demanded, was valid."""

    def used(self, connection: "Connection") -> None:
        """A request has come in full."""

    def lost(self, connection: "Connection") -> None:
        """The connection has ended."""


class Connection(asyncio.Protocol):
    """Passes everything on to the protocol of its HTTP version, and aborts when a deadline passes."""

    def __init__(
        self,
        choose: "Callable[[Connection, str], asyncio.Protocol]",
        acceptor: Acceptor,
        timeouts: Timeouts,
        budget: PartialRequestBudget,
    ) -> None:
        """``choose`` gets the protocol agreed upon by ALPN (empty if none), and returns what reads the
        requests."""
        self._choose = choose
        self._protocol = asyncio.Protocol()
        """Does nothing until the connection is established."""
        self._is_multiplexed = False
        """Whether the protocol itself enforces the deadlines of its requests, as several are open at a
        time."""
        self._acceptor = acceptor
        self._timeouts = timeouts
        self._budget = budget
        self._unread = 0
        """Bytes that have come since the last whole request."""
        self._transport: asyncio.Transport | None = None
        self._deadline = Deadline(self.abort)
        self._progress = Progress.IDLE
        self._is_pipelined = False
        """Whether data came while a request was being responded to."""

    @property
    def is_open(self) -> bool:
        """Whether the connection was established, its handshake included."""
        return self._transport is not None

    @property
    def is_idle(self) -> bool:
        return self._progress is Progress.IDLE

    def abort(self) -> None:
        if self._transport:
            self._transport.abort()

    def evict(self, _: int) -> None:
        """Aborts: an error response is not possible before the request has come in full."""
        self.abort()

    # How far a request is

    def request_begun(self) -> None:
        """The headers of a request are being read; they may have come together with the request before."""
        if self._progress is not Progress.READING:
            self._begin_reading()

    def request_read(self) -> None:
        """The request has come in full; its response has no deadline."""
        self._progress, self._is_pipelined = Progress.RESPONDING, False
        self._deadline.clear()
        self._reserve(0)
        self._acceptor.used(self)

    def request_answered(self) -> None:
        if self._is_pipelined:
            self._begin_reading()
        else:
            self._progress = Progress.IDLE
            self._deadline.set(self._timeouts.idle)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        encrypted = transport.get_extra_info("ssl_object")
        agreed = (encrypted.selected_alpn_protocol() or "") if encrypted else ""
        self._protocol, self._is_multiplexed = self._choose(self, agreed), agreed == HTTP2
        self._deadline.set(self._timeouts.idle)
        self._protocol.connection_made(transport)
        self._acceptor.made(self)

    def data_received(self, data: bytes) -> None:
        if not self._is_multiplexed:
            if self._progress is Progress.IDLE:
                self._begin_reading()
            self._is_pipelined = self._progress is Progress.RESPONDING
            self._reserve(self._unread + len(data))
        self._protocol.data_received(data)

    def eof_received(self) -> bool | None:
        return self._protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.close()
        self._reserve(0)
        self._acceptor.lost(self)
        self._protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _reserve(self, size: int) -> None:
        """A multiplexed protocol reserves for itself."""
        self._unread = size
        if size:
            self._budget.reserve(self, 0, size)
        else:
            self._budget.release(self, 0)

    def _begin_reading(self) -> None:
        self._progress = Progress.READING
        self._deadline.set(self._timeouts.read)


@web.middleware
async def read_in_time(request: web.Request, handler: typedefs.Handler) -> web.StreamResponse:
    """Reads the whole request before it is handled, and tells the connection how far the request is.

    Every application that a listener serves has this middleware; outside of it are only those that change the
    response.
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
