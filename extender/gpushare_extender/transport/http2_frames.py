"""HTTP/2 frame by frame: what is agreed upon, and limits where the codec by itself has none."""

import struct

from jh2.config import H2Configuration
from jh2.connection import H2Connection
from jh2.errors import ErrorCodes
from jh2.events import Event
from jh2.exceptions import DenialOfServiceError
from jh2.hyperframe.frame import Frame, HeadersFrame
from jh2.settings import SettingCodes, Settings

MAX_STREAMS = 512
"""Requests at a time; a client with more opens another connection. A burst of binds takes one for each."""
MAX_FRAME = 2**18
"""Bytes: the names of 5,000 nodes."""
MAX_HEADERS = 2**14
READ_WINDOW = 2**24
"""Bytes that a client may send before they are acknowledged. They are as they come: what is kept of requests
that have not come in full is limited by the size of each, and by ``PartialRequestBudget``."""
FRAME_HEAD = 9
"""Bytes of a frame before what it carries. Source: RFC 9113, 4.1."""

_CONFIGURATION = H2Configuration(
    client_side=False,
    header_encoding=None,
    validate_inbound_headers=False,
    validate_outbound_headers=False,
    normalize_inbound_headers=False,
    normalize_outbound_headers=False,
)
"""Headers are passed on to nobody: method and path alone are read, and neither has to be there."""


class ServerFrames(H2Connection):  # type: ignore[misc]  # it has no types
    """The server's side of a connection."""

    MAX_CLOSED_STREAMS = 4096
    """Those that h2 knows as closed, to tell what was late from what is wrong; by itself it keeps 7 MiB of
    them for each connection."""

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
        """The first that is sent."""
        self.initiate_connection()
        self.increment_flow_control_window(READ_WINDOW)

    @property
    def unread(self) -> int:
        """Bytes of a frame, or of headers in several, that has not come in full."""
        buffer = self.incoming_buffer
        return len(buffer._data) + sum(len(each.data) for each in buffer._headers_buffer)

    def receive_data(self, data: bytes) -> list[Event]:
        """Its buffer looks at the size of a frame, and of headers, once they have come in full: it would keep
        16 MiB of each for every connection.

        Raises:
            ProtocolError: that is not HTTP/2, or more than was agreed upon.
        """
        events: list[Event] = super().receive_data(data)
        buffer = self.incoming_buffer
        headers = sum(len(each.data) for each in buffer._headers_buffer)
        if headers > MAX_HEADERS or len(buffer._data) > MAX_FRAME + FRAME_HEAD:
            raise DenialOfServiceError(f"{self.unread} bytes of one frame")
        return events

    def forget_unread(self) -> None:
        """Nothing more is received."""
        self.incoming_buffer._data = bytearray()
        self.incoming_buffer._headers_buffer.clear()

    def _receive_headers_frame(self, frame: HeadersFrame) -> tuple[list[Frame], list[Event]]:
        """Its decoder decodes all before it looks at their size: 16 MiB of them keep everybody waiting for
        seconds."""
        if len(frame.data) > MAX_HEADERS:
            raise DenialOfServiceError(f"{len(frame.data)} bytes of headers")
        received: tuple[list[Frame], list[Event]] = super()._receive_headers_frame(frame)
        return received


def going_away(last: int) -> bytes:
    """Returns a GOAWAY after which ``last`` and those before it are answered still: with h2's own nothing can
    be sent any more. Source: RFC 9113, 4.1 and 6.8."""
    length, kind, flags, stream, error = 8, 7, 0, 0, ErrorCodes.NO_ERROR
    return struct.pack(">HBBBLLL", length >> 8, length & 0xFF, kind, flags, stream, last, error)
