"""HTTP/2 frame by frame: the settings, and limits that the codec (jh2) does not enforce by itself.

The only module that uses internals of jh2: a test fails when another version of jh2 no longer has them.
"""

import struct

from jh2.config import H2Configuration
from jh2.connection import H2Connection
from jh2.errors import ErrorCodes
from jh2.events import Event
from jh2.exceptions import DenialOfServiceError
from jh2.hyperframe.frame import Frame, HeadersFrame
from jh2.settings import SettingCodes, Settings

MAX_STREAMS = 512
"""Concurrent requests; a client with more opens another connection. Each bind of a burst takes one."""
MAX_FRAME = 2**18
"""Bytes: the names of 5,000 nodes."""
MAX_HEADERS = 2**14
READ_WINDOW = 2**24
"""Bytes that a client may send before they are acknowledged. They are acknowledged as they come: what limits
partial requests is the size of each, and ``PartialRequestBudget``."""
FRAME_HEADER = 9
"""Bytes. Source: RFC 9113, 4.1."""

_CONFIGURATION = H2Configuration(
    client_side=False,
    header_encoding=None,
    validate_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_inbound_headers=False,
    normalize_outbound_headers=False,
)
"""Headers are not validated: only method and path are read, nothing is passed on, and neither is required."""


class ServerFrames(H2Connection):  # type: ignore[misc]  # it has no types
    """The server's side of a connection."""

    MAX_CLOSED_STREAMS = 4096
    """Closed streams that jh2 remembers, to tell late frames from wrong ones; its default takes 7 MiB for
    each connection."""

    def __init__(self) -> None:
        super().__init__(_CONFIGURATION)
        values = {
            SettingCodes.MAX_CONCURRENT_STREAMS: MAX_STREAMS,
            SettingCodes.INITIAL_WINDOW_SIZE: READ_WINDOW,
            SettingCodes.MAX_FRAME_SIZE: MAX_FRAME,
            SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADERS,
        }
        self.local_settings = Settings(client=False, initial_values=values)
        self.max_inbound_frame_size = MAX_FRAME
        self.decoder.max_header_list_size = MAX_HEADERS

    def begin(self) -> None:
        """Makes the first frames to send."""
        self.initiate_connection()
        self.increment_flow_control_window(READ_WINDOW)

    @property
    def unread(self) -> int:
        """Bytes of a partial frame, and of headers whose last frame has not come."""
        return len(self.incoming_buffer._data) + self._unread_headers

    @property
    def _unread_headers(self) -> int:
        return sum(len(frame.data) for frame in self.incoming_buffer._headers_buffer)

    def receive_data(self, data: bytes) -> list[Event]:
        """Checks sizes as data comes: jh2's buffer checks a frame and headers only once they are complete,
        and would keep 16 MiB of each for every connection.

        Raises:
            ProtocolError: the data is not HTTP/2, or exceeds the settings.
        """
        events: list[Event] = super().receive_data(data)
        partial_frame = len(self.incoming_buffer._data)
        if self._unread_headers > MAX_HEADERS or partial_frame > MAX_FRAME + FRAME_HEADER:
            raise DenialOfServiceError(f"{self.unread} bytes of one frame")
        return events

    def drop_unread(self) -> None:
        self.incoming_buffer._data = bytearray()
        self.incoming_buffer._headers_buffer.clear()

    def _receive_headers_frame(self, frame: HeadersFrame) -> tuple[list[Frame], list[Event]]:
        """Checks the size before decoding: jh2's decoder decodes 16 MiB of headers, which takes seconds,
        before it checks."""
        if len(frame.data) > MAX_HEADERS:
            raise DenialOfServiceError(f"{len(frame.data)} bytes of headers")
        received: tuple[list[Frame], list[Event]] = super()._receive_headers_frame(frame)
        return received


def going_away(last: int) -> bytes:
    """Returns a GOAWAY frame after which streams up to ``last`` still get their responses: after jh2's own
    nothing can be sent any more. Source: RFC 9113, 4.1 and 6.8."""
    length, kind, flags, stream, error = 8, 7, 0, 0, ErrorCodes.NO_ERROR
    return struct.pack(">HBBBLLL", length >> 8, length & 0xFF, kind, flags, stream, last, error)
