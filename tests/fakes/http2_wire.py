"""HTTP/2 frame by frame, and a connection whose other side is not there."""

import asyncio
from collections.abc import Iterable
from typing import Any

from hpack import Encoder
from hyperframe.frame import Frame, HeadersFrame

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
GOOD = [(":method", "POST"), (":scheme", "https"), (":authority", "x"), (":path", "/gpushare/filter")]


def headers_frame(number: int, found: list[tuple[str, str]]) -> Frame:
    return HeadersFrame(number or 1, data=Encoder().encode(found))


def wire(frame: Frame, named: Iterable[str] = ()) -> bytes:
    frame.flags.clear()
    for flag in named:
        if flag in {defined_flag.name for defined_flag in frame.defined_flags}:
            frame.flags.add(flag)
    return frame.serialize()


class Transport:
    """Where it is written to."""

    def __init__(self) -> None:
        self.written = b""
        self.writes = 0
        self.is_closed = False

    def get_extra_info(self, _: str) -> Any:
        return None

    def write(self, data: bytes) -> None:
        assert not self.is_closed
        self.written += data
        self.writes += 1

    def close(self) -> None:
        self.is_closed = True


class SlowTransport(Transport):
    """A transport whose buffer is full after ``room`` bytes, which it says as asyncio's transports do."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self.protocol = asyncio.Protocol()

    def write(self, data: bytes) -> None:
        is_full = len(self.written) > self._room
        super().write(data)
        if not is_full and len(self.written) > self._room:
            self.protocol.pause_writing()


class Owner:
    """Counts whether a request is on the connection."""

    def __init__(self) -> None:
        self.is_used = self.is_broken_off = False
        self.freed = asyncio.Event()

    def request_read(self) -> None:
        assert not self.is_used
        self.is_used = True
        self.freed.clear()

    def request_answered(self) -> None:
        assert self.is_used
        self.is_used = False
        self.freed.set()

    def abort(self) -> None:
        self.is_broken_off = True
