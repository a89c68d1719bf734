"""A client of HTTP/2 that sends whatever a test says, including what no client should send."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded, StreamReset
from h2.settings import SettingCodes

SECONDS = 30.0
HEAD = 9
"""Bytes of a frame before its payload. Source: RFC 9113, 4.1."""
GOAWAY = 7


@dataclass(slots=True)
class Exchange:
    """What came back on one stream. ``reset``: the error code where it was reset."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    content: bytes = b""
    ended: bool = False
    reset: int | None = None


class Http2Client:
    """``takes``: whether the client gives the server new window for what it has received."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.http2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self.exchanges: dict[int, Exchange] = {}
        self.takes = True
        self.terminated = self.closed = False
        self.last_answered: list[int] = []
        """By each word that the connection ends."""
        self._unread = b""
        self._changed = asyncio.Event()

    def open(self, method: str = "POST", path: str = "/", *, ends: bool = False) -> int:
        """Returns the number of a new stream."""
        number = self.http2.get_next_available_stream_id()
        self.exchanges[number] = Exchange()
        headers = [(":method", method), (":scheme", "https"), (":authority", "x"), (":path", path)]
        self.http2.send_headers(number, headers, end_stream=ends)
        self.flush()
        return number

    def ask(self, method: str = "POST", path: str = "/", content: bytes = b"x") -> int:
        """Sends a whole request, as much as the windows allow."""
        number = self.open(method, path, ends=not content)
        if content:
            self.send(number, content, ends=True)
        return number

    def send(self, number: int, content: bytes, *, ends: bool = False) -> None:
        size = self.http2.max_outbound_frame_size
        for at in range(0, len(content), size):
            part = content[at : at + size]
            self.http2.send_data(number, part, end_stream=ends and at + size >= len(content))
        self.flush()

    def reset(self, number: int) -> None:
        self.http2.reset_stream(number)
        self.flush()

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def flush(self) -> None:
        self.write(self.http2.data_to_send())

    async def answer(self, number: int) -> Exchange:
        """Returns the exchange once it has ended, either way."""
        exchange = self.exchanges[number]
        await self.until(lambda: exchange.ended or exchange.reset is not None, f"an answer on {number}")
        return exchange

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise TimeoutError(f"waited for {what}") from None

    async def read(self) -> None:
        """Takes what comes until the connection is closed."""
        try:
            while data := await self._reader.read(65536):
                for event in self.http2.receive_data(self._without_farewell(data)):
                    self._take(event)
                self.flush()
                self._changed.set()
        except ConnectionError:
            pass
        self.closed = True
        self._changed.set()

    def _without_farewell(self, data: bytes) -> bytes:
        """h2 accepts nothing after GOAWAY. Other clients, such as Go's, do: requests that were sent are still
        answered."""
        self._unread, kept = self._unread + data, b""
        while len(self._unread) >= HEAD:
            size = HEAD + int.from_bytes(self._unread[:3], "big")
            if len(self._unread) < size:
                break
            frame, self._unread = self._unread[:size], self._unread[size:]
            if frame[3] == GOAWAY:
                self.terminated = True
                self.last_answered.append(int.from_bytes(frame[HEAD : HEAD + 4], "big"))
            else:
                kept += frame
        return kept

    def _take(self, event: Event) -> None:
        match event:
            case ResponseReceived():
                exchange = self.exchanges[event.stream_id]
                exchange.headers = {str(name): str(value) for name, value in event.headers}
                exchange.status = int(exchange.headers[":status"])
            case DataReceived():
                self.exchanges[event.stream_id].content += event.data
                if self.takes:
                    self.http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case StreamEnded():
                self.exchanges[event.stream_id].ended = True
            case StreamReset():
                self.exchanges[event.stream_id].reset = int(event.error_code)


@asynccontextmanager
async def connected(port: int, tls: ssl.SSLContext, *, window: int = 65535) -> AsyncIterator[Http2Client]:
    """``window``: bytes that the server may send on a stream before the client has taken some."""
    tls.set_alpn_protocols(["h2"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
    client = Http2Client(reader, writer)
    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
    client.http2.initiate_connection()
    client.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: window})
    client.flush()
    reading = asyncio.create_task(client.read())
    try:
        yield client
    finally:
        reading.cancel()
        writer.close()
        await asyncio.gather(reading, writer.wait_closed(), return_exceptions=True)
