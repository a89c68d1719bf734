"""HTTP/2: all calls of a kube-scheduler on one connection.

Go's client keeps two idle connections of HTTP/1.1 to a host and closes all others: in a burst of binds nearly
each would begin with a handshake, which costs both sides more than the rest of the bind.
"""

import asyncio
import logging
import struct
from collections.abc import Awaitable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol, cast

from jh2.config import H2Configuration
from jh2.connection import H2Connection
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
from jh2.exceptions import DenialOfServiceError, ProtocolError
from jh2.hyperframe.frame import Frame, HeadersFrame
from jh2.settings import SettingCodes, Settings

from gpushare_extender.http.connection import is_encrypted, port_of
from gpushare_extender.http.exchange import Answer, Answering, Call, error_answer

MOST_STREAMS = 512
"""Requests at a time; a client with more opens another connection. A burst of binds takes one for each."""
MOST_ANSWERING = 2 * MOST_STREAMS
"""With those that were answered to nobody: their streams were reset."""
LARGEST_FRAME = 2**18
"""Bytes: the names of 5,000 nodes."""
LARGEST_HEADERS = 2**14
READ_WINDOW = 2**24
"""Bytes of requests that have not come in full, all streams together."""
MOST_UNTAKEN = 2**18
"""Bytes besides answers, such as acknowledgements, that a client lets lie while it asks for more of them."""

_CONFIGURATION = H2Configuration(
    client_side=False,
    header_encoding=None,
    validate_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_inbound_headers=False,
    normalize_outbound_headers=False,
)
"""Headers are passed on to nobody: method and path alone are read, and neither has to be there."""

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
    window: int = 0
    """Bytes that the client may not send because of it."""
    is_read: bool = False
    unsent: memoryview = NOTHING
    timer: asyncio.TimerHandle | None = None

    def cancel_timer(self) -> None:
        if self.timer:
            self.timer.cancel()
        self.timer = None


class Http2Requests(asyncio.Protocol):
    """Has every request of one connection answered."""

    def __init__(self, answering: Answering, owner: Owner, limits: StreamLimits) -> None:
        self._answering = answering
        self._owner = owner
        self._limits = limits
        self._http2 = _server()
        self._transport: asyncio.Transport | None = None
        self._port, self._is_proven = 0, False
        self._streams: dict[int, _Stream] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_paused = self._is_draining = False
        self._untaken = 0
        """Bytes written since the client has ceased to read."""
        self._last: int | None = None
        """The last stream that is answered, once the client has been told."""
        self.over = asyncio.Event()
        """Is set when the connection has ended."""

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
            self._transport.write(_going_away(self._last))

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._port, self._is_proven = port_of(transport), is_encrypted(transport)
        self._http2.initiate_connection()
        self._http2.increment_flow_control_window(READ_WINDOW)
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
        for number in self._unfinished():
            self._begin_timer(number, self._limits.read)
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
        if any(isinstance(each, ConnectionTerminated) for each in events):
            self.end()
            return
        ended = {each.stream_id for each in events if isinstance(each, StreamReset)}
        for number in ended:
            self._close(number)
        for event in events:
            if self._transport:
                self._take(event, ended)

    def _take(self, event: Event, ended: Collection[int]) -> None:
        match event:
            case RequestReceived() if event.stream_id not in ended:
                self._open(event.stream_id, dict(event.headers))
            case DataReceived():
                self._receive(event.stream_id, event.data, event.flow_controlled_length)
            case StreamEnded():
                self._finish_reading(event.stream_id)
            case WindowUpdated() | RemoteSettingsChanged():
                self._send_unsent()

    def _open(self, number: int, headers: Mapping[bytes, bytes]) -> None:
        if self._is_draining or len(self._tasks) >= MOST_ANSWERING:
            self._http2.reset_stream(number, ErrorCodes.REFUSED_STREAM)  # which says: nothing was done
            return
        if not self._streams:
            self._owner.request_read()
        path = headers.get(b":path", b"").partition(b"?")[0]
        method = headers.get(b":method", b"")
        self._streams[number] = _Stream(method.decode("latin-1"), path.decode("latin-1"))

    def _receive(self, number: int, data: bytes, window: int) -> None:
        """The window is given back when the request is complete: so many bytes wait at the most."""
        stream = self._streams.get(number)
        if stream is None or stream.length > self._limits.largest:
            self._http2.acknowledge_received_data(window, number)
            return
        stream.length += len(data)
        stream.window += window
        if stream.length <= self._limits.largest:
            stream.parts.append(data)
        else:
            self._refuse_as_too_large(number, stream)

    def _refuse_as_too_large(self, number: int, stream: _Stream) -> None:
        """What comes of it from now on is not looked at, its end neither."""
        stream.parts.clear()
        stream.is_read = True
        stream.cancel_timer()
        self._give_window_back(number, stream)
        message = f"more than {self._limits.largest} bytes: is nodeCacheCapable set for this extender?"
        self._send(number, stream, error_answer(message, HTTPStatus.REQUEST_ENTITY_TOO_LARGE))

    def _finish_reading(self, number: int) -> None:
        stream = self._streams.get(number)
        if stream is None or stream.is_read:
            return
        stream.is_read = True
        stream.cancel_timer()
        self._give_window_back(number, stream)
        call = Call(stream.method, stream.path, b"".join(stream.parts), self._port, self._is_proven)
        stream.parts.clear()
        self._answer(number, stream, call)

    def _give_window_back(self, number: int, stream: _Stream) -> None:
        if stream.window:
            self._http2.acknowledge_received_data(stream.window, number)
            stream.window = 0

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
        """One answer after the other: the transport may have enough after each."""
        for number, stream in [*self._streams.items()]:
            if stream.unsent and not self._is_paused:
                self._send_rest(number, stream)
                self._flush()

    def _send_rest(self, number: int, stream: _Stream) -> None:
        """As much as the client takes now."""
        while stream.unsent and not self._is_paused:
            room = min(self._http2.local_flow_control_window(number), self._http2.max_outbound_frame_size)
            if room <= 0:
                break
            part, stream.unsent = stream.unsent[:room], stream.unsent[room:]
            self._http2.send_data(number, bytes(part), end_stream=not stream.unsent)
        if not stream.unsent:
            self._close(number)
        elif stream.timer is None:
            self._begin_timer(number, self._limits.write)

    # How long it takes

    def _unfinished(self) -> list[int]:
        """Returns the requests that are not complete, and that nobody waits for yet."""
        found = self._streams.items()
        return [number for number, each in found if not each.is_read and each.timer is None]

    def _begin_timer(self, number: int, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._streams[number].timer = loop.call_later(seconds, self._give_up, number)

    def _give_up(self, number: int) -> None:
        if number in self._streams:
            self._http2.reset_stream(number, ErrorCodes.CANCEL)
            self._close(number)
            self._flush()

    def _close(self, number: int) -> None:
        """Nothing more comes or goes on it."""
        stream = self._streams.pop(number, None)
        if stream is None:
            return
        stream.cancel_timer()
        self._give_window_back(number, stream)
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
        for stream in self._streams.values():
            stream.cancel_timer()
        self._streams.clear()

    def _flush(self) -> None:
        data = self._http2.data_to_send()
        if not (data and self._transport):
            return
        self._untaken += len(data) if self._is_paused else 0
        self._transport.write(data)
        if self._untaken > MOST_UNTAKEN:
            _log.debug("connection broken off: its client does not read what it asks for")
            self._owner.abort()


def _going_away(last: int) -> bytes:
    """Returns a GOAWAY after which ``last`` and those before it are answered still: with h2's own nothing can
    be sent any more. Source: RFC 9113, 4.1 and 6.8."""
    length, kind, flags, stream, error = 8, 7, 0, 0, ErrorCodes.NO_ERROR
    return struct.pack(">HBBBLLL", length >> 8, length & 0xFF, kind, flags, stream, last, error)


class _Server(H2Connection):  # type: ignore[misc]  # it has no types
    MAX_CLOSED_STREAMS = 4096
    """Those that h2 knows as closed, to tell what was late from what is wrong; by itself it keeps 7 MiB of
    them for each connection."""

    def _receive_headers_frame(self, frame: HeadersFrame) -> tuple[list[Frame], list[Event]]:
        """Its decoder decodes all before it looks at their size: 16 MiB of them keep everybody waiting for
        seconds."""
        if len(frame.data) > LARGEST_HEADERS:
            raise DenialOfServiceError(f"{len(frame.data)} bytes of headers")
        received: tuple[list[Frame], list[Event]] = super()._receive_headers_frame(frame)
        return received


def _server() -> H2Connection:
    http2 = _Server(_CONFIGURATION)
    values = {
        SettingCodes.MAX_CONCURRENT_STREAMS: MOST_STREAMS,
        SettingCodes.INITIAL_WINDOW_SIZE: READ_WINDOW,
        SettingCodes.MAX_FRAME_SIZE: LARGEST_FRAME,
        SettingCodes.MAX_HEADER_LIST_SIZE: LARGEST_HEADERS,
    }
    http2.local_settings = Settings(client=False, initial_values=values)
    http2.max_inbound_frame_size = LARGEST_FRAME
    http2.decoder.max_header_list_size = LARGEST_HEADERS
    return http2
