"""HTTP/2: all requests of a kube-scheduler on one connection.

Go's client keeps two idle HTTP/1.1 connections to a host and closes all others: in a burst of binds nearly
each bind would begin with a handshake, which costs both sides more than the rest of the bind.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, cast

from jh2.errors import ErrorCodes
from jh2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from jh2.exceptions import ProtocolError

from gpushare_extender.transport.connection import Timeouts, is_encrypted, port_of
from gpushare_extender.transport.http2_frames import MAX_STREAMS, ServerFrames, going_away
from gpushare_extender.transport.messages import Handler, Request, Response, error_response
from gpushare_extender.transport.partial_requests import PartialRequestBudget

MAX_PENDING = 2 * MAX_STREAMS
"""Responses being made, including those for streams that were reset since."""
MAX_UNREAD_BYTES = 2**18
"""Of acknowledgements and the like that a client has not read while it causes more of them."""
FLUSH_BYTES = 2**14
"""Of responses: after so many bytes the transport is given them, and may pause the writing."""
PART_OVERHEAD = 64
"""Bytes that each part of a request takes in addition to its content."""
WINDOW_EVENTS = frozenset({WindowUpdated, RemoteSettingsChanged})
"""Events after which more of a response may be sent."""
CONNECTION = 0
"""The connection itself; no stream has this number. Source: RFC 9113, 5.1.1."""

_log = logging.getLogger(__name__)


class MultiplexedConnection(Protocol):
    """What the requests tell their connection."""

    def request_read(self) -> None:
        """There is a request, so the connection is not idle."""

    def request_answered(self) -> None:
        """There is no request any more."""

    def abort(self) -> None:
        """Closes it at once."""


@dataclass(frozen=True, slots=True)
class Http2Service:
    """``max_request`` is in bytes."""

    handler: Handler
    max_request: int


NOTHING = memoryview(b"")


@dataclass(slots=True)
class _Stream:
    """A request being read, then its response being sent."""

    method: str
    path: str
    parts: list[bytes] = field(default_factory=list)
    length: int = 0
    is_read: bool = False
    unsent: memoryview = NOTHING
    timer: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
        """Bytes kept of the partial request."""
        return len(self.method) + len(self.path) + self.length + PART_OVERHEAD * (1 + len(self.parts))

    def cancel_timer(self) -> None:
        if self.timer:
            self.timer.cancel()
        self.timer = None


class Http2Requests(asyncio.Protocol):
    """Has the handler of ``service`` respond to every request of one connection."""

    def __init__(
        self,
        service: Http2Service,
        connection: MultiplexedConnection,
        timeouts: Timeouts,
        budget: PartialRequestBudget | None = None,
    ) -> None:
        """``budget`` is shared by all connections; None makes one for this connection alone."""
        self._service = service
        self._connection = connection
        self._timeouts = timeouts
        self._budget = budget or PartialRequestBudget.for_requests(service.max_request, _log)
        self._http2 = ServerFrames()
        self._transport: asyncio.Transport | None = None
        self._port, self._client_authenticated = 0, False
        self._streams: dict[int, _Stream] = {}
        self._opened: list[int] = []
        """By the data that came last."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_paused = self._is_draining = False
        self._unread_bytes = 0
        """Bytes written since the client stopped reading."""
        self._last: int | None = None
        """The last stream that gets a response, once the client has been told."""
        self.ended = asyncio.Event()
        """Set when no more responses are sent."""
        self.over = asyncio.Event()
        """Set when the client has closed its side, too."""

    def drain(self) -> None:
        """Takes no more requests, and ends the connection after the responses to those that have come.

        The client is told at once: a client whose request is only refused tries again on the same connection,
        and Go's client does so until its caller's timeout.
        """
        self._is_draining = True
        if not self._streams:
            self.end()
        elif self._transport and self._last is None:
            self._last = self._http2.highest_inbound_stream_id
            self._transport.write(going_away(self._last))

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._port, self._client_authenticated = port_of(transport), is_encrypted(transport)
        self._http2.begin()
        self._flush()

    def data_received(self, data: bytes) -> None:
        if self._transport is None:
            return
        try:
            found = self._http2.receive_data(data)
        except ProtocolError as error:
            _log.debug("not HTTP/2: %s", error)
            self.end()
            return
        self._take_all(found)
        self._start_read_timers()
        self._reserve_unread()
        self._flush()

    def connection_lost(self, _: Exception | None) -> None:
        self._forget()
        self.over.set()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused, self._unread_bytes = False, 0
        self._send_unsent()

    # What the client sends

    def _take_all(self, events: list[Event]) -> None:
        """Resets come first: jh2 has closed such streams, and nothing can be sent on them for other
        events."""
        kinds = {type(event) for event in events}
        if ConnectionTerminated in kinds:
            self.end()
            return
        ended = {event.stream_id for event in events if isinstance(event, StreamReset)}
        for number in ended:
            self._close(number)
        for event in events:
            if self._transport:
                self._take(event, ended)
        if self._transport and not kinds.isdisjoint(WINDOW_EVENTS):
            self._send_unsent()  # once: going over all streams costs as much as thousands of such frames

    def _take(self, event: Event, ended: Collection[int]) -> None:
        match event:
            case RequestReceived() if event.stream_id not in ended:
                self._open(event.stream_id, dict(event.headers))
            case DataReceived():
                self._receive(event.stream_id, event.data, event.flow_controlled_length)
            case StreamEnded():
                self._finish_reading(event.stream_id)

    def _open(self, number: int, headers: Mapping[bytes, bytes]) -> None:
        if self._is_draining or len(self._tasks) >= MAX_PENDING:
            self._http2.reset_stream(number, ErrorCodes.REFUSED_STREAM)  # says that nothing was done
            return
        if not self._streams:
            self._connection.request_read()
        path = headers.get(b":path", b"").partition(b"?")[0]
        method = headers.get(b":method", b"")
        stream = _Stream(method.decode("latin-1"), path.decode("latin-1"))
        self._streams[number] = stream
        self._opened.append(number)
        self._budget.reserve(self, number, stream.size)

    def _receive(self, number: int, data: bytes, window: int) -> None:
        """``window``: bytes to acknowledge, so that the client may send as many again."""
        self._http2.acknowledge_received_data(window, number)
        stream = self._streams.get(number)
        if stream is None or stream.length > self._service.max_request:
            return
        stream.length += len(data)
        if stream.length <= self._service.max_request:
            stream.parts.append(data)
            self._budget.reserve(self, number, stream.size)
        else:
            self._refuse_as_too_large(number, stream)

    def _refuse_as_too_large(self, number: int, stream: _Stream) -> None:
        """Responds at once; the rest of the request is ignored."""
        stream.parts.clear()
        self._end_reading(number, stream)
        message = f"more than {self._service.max_request} bytes: is nodeCacheCapable set for this extender?"
        self._send(number, stream, error_response(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE))

    def _finish_reading(self, number: int) -> None:
        stream = self._streams.get(number)
        if stream is None or stream.is_read:
            return
        self._end_reading(number, stream)
        content = b"".join(stream.parts)
        stream.parts.clear()
        request = Request(stream.method, stream.path, content, self._port, self._client_authenticated)
        self._respond(number, stream, request)

    def _end_reading(self, number: int, stream: _Stream) -> None:
        stream.is_read = True
        stream.cancel_timer()
        self._budget.release(self, number)

    def _reserve_unread(self) -> None:
        """Reserves anew each time, so that of all partial frames the one without new data for longest is
        evicted first."""
        self._budget.release(self, CONNECTION)
        if self._transport and (unread := self._http2.unread):
            self._budget.reserve(self, CONNECTION, unread)

    def abort(self) -> None:
        """Closes at once, without waiting for the client to close its side."""
        self._connection.abort()

    def evict(self, number: int) -> None:
        """Resets the stream of a partial request in such a way that the client may send it again."""
        if number == CONNECTION:
            self._connection.abort()
        else:
            self._give_up(number, ErrorCodes.REFUSED_STREAM)

    # Responses

    def _respond(self, number: int, stream: _Stream, request: Request) -> None:
        """Responds at once, or in a task where the handler has to wait."""
        try:
            response = self._service.handler(request)
        except Exception as error:
            self._fail(number, request, error)
            return
        if isinstance(response, Response):
            self._send_now(number, stream, response)
            return
        task = asyncio.create_task(self._respond_later(number, stream, request, response))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _respond_later(
        self, number: int, stream: _Stream, request: Request, response: Awaitable[Response]
    ) -> None:
        try:
            self._send_now(number, stream, await response)
        except Exception as error:
            self._fail(number, request, error)

    def _fail(self, number: int, request: Request, error: Exception) -> None:
        _log.error("no response to %s %s", request.method, request.path, exc_info=error)
        self._give_up(number)

    def _send_now(self, number: int, stream: _Stream, response: Response) -> None:
        """Does nothing if the stream was closed in the meantime."""
        if self._streams.get(number) is stream:
            self._send(number, stream, response)
            self._flush()

    def _send(self, number: int, stream: _Stream, response: Response) -> None:
        content = b"" if stream.method == "HEAD" else response.content
        headers = [
            (b":status", str(int(response.status)).encode()),
            (b"content-type", response.content_type.encode()),
            (b"content-length", str(len(response.content)).encode()),
        ]
        self._http2.send_headers(number, headers, end_stream=not content)
        stream.unsent = memoryview(content)
        if content:
            self._send_rest(number, stream)
        else:
            self._close(number)

    def _send_unsent(self) -> None:
        """Flushes now and then, as the transport may pause the writing after each flush."""
        sent = 0
        for number, stream in [*self._streams.items()]:
            if stream.unsent and not self._is_paused:
                sent += self._send_rest(number, stream)
            if sent >= FLUSH_BYTES:
                self._flush()
                sent = 0
        self._flush()

    def _send_rest(self, number: int, stream: _Stream) -> int:
        """Sends as much as the client's window allows. Returns the number of bytes."""
        before = len(stream.unsent)
        while stream.unsent and not self._is_paused:
            room = min(self._http2.local_flow_control_window(number), self._http2.max_outbound_frame_size)
            if room <= 0:
                break
            part, stream.unsent = stream.unsent[:room], stream.unsent[room:]
            self._http2.send_data(number, bytes(part), end_stream=not stream.unsent)
        left = len(stream.unsent)
        if not left:
            self._close(number)
        elif stream.timer is None:
            self._start_timer(number, self._timeouts.idle)
        return before - left

    # Deadlines

    def _start_read_timers(self) -> None:
        """For the requests that began with this data and have not come in full with it."""
        opened, self._opened = self._opened, []
        for number in opened:
            stream = self._streams.get(number)
            if stream and not stream.is_read:
                self._start_timer(number, self._timeouts.read)

    def _start_timer(self, number: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._streams[number].timer = loop.call_later(seconds, self._give_up, number)

    def _give_up(self, number: int, error: ErrorCodes = ErrorCodes.CANCEL) -> None:
        if number in self._streams:
            self._http2.reset_stream(number, error)
            self._close(number)
            self._flush()

    def _close(self, number: int) -> None:
        stream = self._streams.pop(number, None)
        if stream is None:
            return
        stream.cancel_timer()
        self._budget.release(self, number)
        if not self._streams:
            self._connection.request_answered()
            if self._is_draining:
                self.end()

    def end(self) -> None:
        """Tells the client that the connection is over, and closes it: no more responses are sent."""
        transport = self._transport
        if transport is None:
            return
        with suppress(ProtocolError):
            self._http2.close_connection(last_stream_id=self._last)
        self._flush()
        self._forget()
        transport.close()

    def _forget(self) -> None:
        """Handlers that run, such as binds, go on."""
        self._transport = None
        self.ended.set()
        for number, stream in self._streams.items():
            stream.cancel_timer()
            self._budget.release(self, number)
        self._streams.clear()
        self._budget.release(self, CONNECTION)
        self._http2.drop_unread()

    def _flush(self) -> None:
        data = self._http2.data_to_send()
        if not (data and self._transport):
            return
        self._unread_bytes += len(data) if self._is_paused else 0
        self._transport.write(data)
        if self._unread_bytes > MAX_UNREAD_BYTES:
            _log.debug("connection aborted: the client does not read the acknowledgements it causes")
            self._connection.abort()
