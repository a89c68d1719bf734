"""HTTP/2: all calls of a kube-scheduler on one connection.

Go's client keeps two idle connections of HTTP/1.1 to a host and closes all others: in a burst of binds nearly
each would begin with a handshake, which costs both sides more than the rest of the bind.
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

from gpushare_extender.transport.connection import is_encrypted, port_of
from gpushare_extender.transport.exchange import Answer, Answering, Call, error_answer
from gpushare_extender.transport.http2_frames import MAX_STREAMS, ServerFrames, going_away
from gpushare_extender.transport.unfinished import PartialRequestBudget

MAX_ANSWERING = 2 * MAX_STREAMS
"""With those that were answered to nobody: their streams were reset."""
MAX_UNTAKEN = 2**18
"""Bytes besides answers, such as acknowledgements, that a client lets lie while it asks for more of them."""
WRITTEN_AT_ONCE = 2**14
"""Bytes of answers, before it is seen whether the transport has enough."""
PART = 64
"""Bytes that each part of a request takes besides what is in it."""
MAKING_ROOM = frozenset({WindowUpdated, RemoteSettingsChanged})
"""Events after which more of an answer may go out."""
CONNECTION = 0
"""No stream has this number. Source: RFC 9113, 5.1.1."""

_log = logging.getLogger(__name__)


class Owner(Protocol):
    """The connection, as far as its requests change it."""

    def request_read(self) -> None:
        """A request is on it, and has all the time it wants."""

    def request_answered(self) -> None:
        """None is on it."""

    def abort(self) -> None:
        """Breaks it off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """``read``: seconds for a request from its first byte to its last. ``write``: seconds in which the client
    has to take an answer. ``largest``: bytes of a request."""

    read: float
    write: float
    largest: int


NOTHING = memoryview(b"")


@dataclass(slots=True)
class _Stream:
    """A request on its way in, then its answer on its way out."""

    method: str
    path: str
    parts: list[bytes] = field(default_factory=list)
    length: int = 0
    is_read: bool = False
    unsent: memoryview = NOTHING
    timer: asyncio.TimerHandle | None = None

    @property
    def held(self) -> int:
        """Bytes that are kept of what has come."""
        return len(self.method) + len(self.path) + self.length + PART * (1 + len(self.parts))

    def cancel_timer(self) -> None:
        if self.timer:
            self.timer.cancel()
        self.timer = None


class Http2Requests(asyncio.Protocol):
    """Has every request of one connection answered."""

    def __init__(
        self,
        answering: Answering,
        owner: Owner,
        limits: StreamLimits,
        unfinished: PartialRequestBudget | None = None,
    ) -> None:
        """``unfinished``: of all connections together; by itself of this one."""
        self._answering = answering
        self._owner = owner
        self._limits = limits
        self._unfinished = unfinished or PartialRequestBudget.for_requests(limits.largest, _log)
        self._http2 = ServerFrames()
        self._transport: asyncio.Transport | None = None
        self._port, self._is_proven = 0, False
        self._streams: dict[int, _Stream] = {}
        self._opened: list[int] = []
        """Since the last data came."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_paused = self._is_draining = False
        self._untaken = 0
        """Bytes written since the client has ceased to read."""
        self._last: int | None = None
        """The last stream that is answered, once the client has been told."""
        self.ended = asyncio.Event()
        """Is set when nobody is answered any more."""
        self.over = asyncio.Event()
        """Is set when the client has closed its side, too."""

    def drain(self) -> None:
        """Takes no more requests, and ends the connection once those that have come are answered.

        The client is told at once: one that is only refused tries again on the same connection, and Go's for
        as long as its caller has patience.
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
        self._port, self._is_proven = port_of(transport), is_encrypted(transport)
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
        self._begin_read_timers()
        self._hold_unread()
        self._flush()

    def connection_lost(self, _: Exception | None) -> None:
        self._forget()
        self.over.set()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused, self._untaken = False, 0
        self._send_unsent()

    # What the client sends

    def _take_all(self, events: list[Event]) -> None:
        """For h2 a stream is over that was reset after what is told first: nothing can be said on it."""
        kinds = {type(each) for each in events}
        if ConnectionTerminated in kinds:
            self.end()
            return
        ended = {each.stream_id for each in events if isinstance(each, StreamReset)}
        for number in ended:
            self._close(number)
        for event in events:
            if self._transport:
                self._take(event, ended)
        if self._transport and not kinds.isdisjoint(MAKING_ROOM):
            self._send_unsent()  # once: each look at all streams costs as much as thousands of such frames

    def _take(self, event: Event, ended: Collection[int]) -> None:
        match event:
            case RequestReceived() if event.stream_id not in ended:
                self._open(event.stream_id, dict(event.headers))
            case DataReceived():
                self._receive(event.stream_id, event.data, event.flow_controlled_length)
            case StreamEnded():
                self._finish_reading(event.stream_id)

    def _open(self, number: int, headers: Mapping[bytes, bytes]) -> None:
        if self._is_draining or len(self._tasks) >= MAX_ANSWERING:
            self._http2.reset_stream(number, ErrorCodes.REFUSED_STREAM)  # which says: nothing was done
            return
        if not self._streams:
            self._owner.request_read()
        path = headers.get(b":path", b"").partition(b"?")[0]
        method = headers.get(b":method", b"")
        stream = _Stream(method.decode("latin-1"), path.decode("latin-1"))
        self._streams[number] = stream
        self._opened.append(number)
        self._unfinished.hold(self, number, stream.held)

    def _receive(self, number: int, data: bytes, window: int) -> None:
        """``window``: bytes by which the client may send less from then on, until they are given back."""
        self._http2.acknowledge_received_data(window, number)
        stream = self._streams.get(number)
        if stream is None or stream.length > self._limits.largest:
            return
        stream.length += len(data)
        if stream.length <= self._limits.largest:
            stream.parts.append(data)
            self._unfinished.hold(self, number, stream.held)
        else:
            self._refuse_as_too_large(number, stream)

    def _refuse_as_too_large(self, number: int, stream: _Stream) -> None:
        """What comes of it from now on is not looked at, its end neither."""
        stream.parts.clear()
        self._end_reading(number, stream)
        message = f"more than {self._limits.largest} bytes: is nodeCacheCapable set for this extender?"
        self._send(number, stream, error_answer(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE))

    def _finish_reading(self, number: int) -> None:
        stream = self._streams.get(number)
        if stream is None or stream.is_read:
            return
        self._end_reading(number, stream)
        call = Call(stream.method, stream.path, b"".join(stream.parts), self._port, self._is_proven)
        stream.parts.clear()
        self._answer(number, stream, call)

    def _end_reading(self, number: int, stream: _Stream) -> None:
        stream.is_read = True
        stream.cancel_timer()
        self._unfinished.release(self, number)

    def _hold_unread(self) -> None:
        """Anew each time: of the frames that have begun, the one that was not gone on with for longest makes
        room."""
        self._unfinished.release(self, CONNECTION)
        if self._transport and (unread := self._http2.unread):
            self._unfinished.hold(self, CONNECTION, unread)

    def abort(self) -> None:
        """Does not wait for the client to close its side."""
        self._owner.abort()

    def make_room(self, number: int) -> None:
        """Gives up a request that has not come in full, so that the client may send it again."""
        if number == CONNECTION:
            self._owner.abort()
        else:
            self._give_up(number, ErrorCodes.REFUSED_STREAM)

    # What is answered

    def _answer(self, number: int, stream: _Stream, call: Call) -> None:
        """At once, or by a task where something has to be waited for."""
        try:
            answer = self._answering(call)
        except Exception as error:
            self._fail(number, call, error)
            return
        if isinstance(answer, Answer):
            self._send_now(number, stream, answer)
            return
        task = asyncio.create_task(self._answer_later(number, stream, call, answer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer_later(
        self, number: int, stream: _Stream, call: Call, answer: Awaitable[Answer]
    ) -> None:
        try:
            self._send_now(number, stream, await answer)
        except Exception as error:
            self._fail(number, call, error)

    def _fail(self, number: int, call: Call, error: Exception) -> None:
        _log.error("%s %s is not answered", call.method, call.path, exc_info=error)
        self._give_up(number)

    def _send_now(self, number: int, stream: _Stream, answer: Answer) -> None:
        """Without effect where nobody waits for it any more."""
        if self._streams.get(number) is stream:
            self._send(number, stream, answer)
            self._flush()

    def _send(self, number: int, stream: _Stream, answer: Answer) -> None:
        content = b"" if stream.method == "HEAD" else answer.content
        headers = [
            (b":status", str(int(answer.status)).encode()),
            (b"content-type", answer.content_type.encode()),
            (b"content-length", str(len(answer.content)).encode()),
        ]
        self._http2.send_headers(number, headers, end_stream=not content)
        stream.unsent = memoryview(content)
        if content:
            self._send_rest(number, stream)
        else:
            self._close(number)

    def _send_unsent(self) -> None:
        """Some at a time: the transport may have enough after each."""
        sent = 0
        for number, stream in [*self._streams.items()]:
            if stream.unsent and not self._is_paused:
                sent += self._send_rest(number, stream)
            if sent >= WRITTEN_AT_ONCE:
                self._flush()
                sent = 0
        self._flush()

    def _send_rest(self, number: int, stream: _Stream) -> int:
        """As much as the client takes now. Returns how many bytes that are."""
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
            self._begin_timer(number, self._limits.write)
        return before - left

    # How long it takes

    def _begin_read_timers(self) -> None:
        """Of the requests that have begun with this data, and have not come in full with it."""
        opened, self._opened = self._opened, []
        for number in opened:
            stream = self._streams.get(number)
            if stream and not stream.is_read:
                self._begin_timer(number, self._limits.read)

    def _begin_timer(self, number: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._streams[number].timer = loop.call_later(seconds, self._give_up, number)

    def _give_up(self, number: int, error: ErrorCodes = ErrorCodes.CANCEL) -> None:
        if number in self._streams:
            self._http2.reset_stream(number, error)
            self._close(number)
            self._flush()

    def _close(self, number: int) -> None:
        """Nothing more comes or goes on it."""
        stream = self._streams.pop(number, None)
        if stream is None:
            return
        stream.cancel_timer()
        self._unfinished.release(self, number)
        if not self._streams:
            self._owner.request_answered()
            if self._is_draining:
                self.end()

    def end(self) -> None:
        """Tells the client that the connection is over; nobody is answered any more."""
        transport = self._transport
        if transport is None:
            return
        with suppress(ProtocolError):
            self._http2.close_connection(last_stream_id=self._last)
        self._flush()
        self._forget()
        transport.close()

    def _forget(self) -> None:
        """What has been asked goes on, such as binds."""
        self._transport = None
        self.ended.set()
        for number, stream in self._streams.items():
            stream.cancel_timer()
            self._unfinished.release(self, number)
        self._streams.clear()
        self._unfinished.release(self, CONNECTION)
        self._http2.forget_unread()

    def _flush(self) -> None:
        data = self._http2.data_to_send()
        if not (data and self._transport):
            return
        self._untaken += len(data) if self._is_paused else 0
        self._transport.write(data)
        if self._untaken > MAX_UNTAKEN:
            _log.debug("connection broken off: its client does not read what it asks for")
            self._owner.abort()
