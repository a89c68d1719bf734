"""HTTP/2: what comes in one piece, and what is written to a client that does not read."""

import asyncio
from collections.abc import Iterator
from typing import cast

import pytest
from hpack import Encoder
from hyperframe.frame import (
    DataFrame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from tests.fakes.http2_wire import GOOD, PREFACE, Owner, SlowTransport, Transport, headers_frame, wire

from gpushare_extender.transport.connection import Timeouts
from gpushare_extender.transport.http2 import MAX_UNREAD_BYTES, Http2Requests, Http2Service
from gpushare_extender.transport.http2_frames import MAX_HEADERS, ServerFrames
from gpushare_extender.transport.messages import Request, Response

LARGEST = 1000
LENGTH = 5000
HELD = 1
"""The stream whose answer is not there yet."""
INITIAL_WINDOW = 4
DATA = (0, HELD)


class Answers:
    """The first call is answered when it is let go, all others at once."""

    def __init__(self) -> None:
        self.requests_seen: list[Request] = []
        self.free = asyncio.Event()

    async def __call__(self, request: Request) -> Response:
        self.requests_seen.append(request)
        if len(self.requests_seen) == 1:
            await self.free.wait()
        return Response(b"y" * LENGTH)


class Conversation:
    """With a client that has asked one question, and sends on as it is told."""

    def __init__(self, transport: Transport, *, write: float = 5.0) -> None:
        self.answers, self.owner, self.transport = Answers(), Owner(), transport
        service, timeouts = Http2Service(self.answers, LARGEST), Timeouts(read=5.0, idle=write)
        self.requests = Http2Requests(service, self.owner, timeouts)
        self.requests.connection_made(cast("asyncio.Transport", transport))

    async def begin(self, window: int = 65535) -> None:
        start = PREFACE + wire(SettingsFrame(0, settings={INITIAL_WINDOW: window}))
        await self.say(start + request(HELD, "END_STREAM"))
        assert len(self.answers.requests_seen) == 1

    async def say(self, data: bytes) -> None:
        self.requests.data_received(data)
        await self.go_on()

    async def go_on(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    def heard(self) -> int:
        """Returns how many bytes of an answer the held question has been given."""
        return sum(
            length for kind, stream, length in frames(self.transport.written) if (kind, stream) == DATA
        )


def frames(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yields the type, the stream and the length of each. Source: RFC 9113, 4.1."""
    while data:
        length = int.from_bytes(data[:3], "big")
        yield data[3], int.from_bytes(data[5:9], "big"), length
        data = data[9 + length :]


def request(number: int, *flags: str) -> bytes:
    return wire(headers_frame(number, GOOD), ["END_HEADERS", *flags])


def content(number: int, size: int, *flags: str) -> bytes:
    return wire(DataFrame(number, data=b"x" * size), flags)


def reset(number: int) -> bytes:
    return wire(RstStreamFrame(number, error_code=8))


def more_room(number: int, size: int) -> bytes:
    return wire(WindowUpdateFrame(number, window_increment=size))


class TestWhatComesTogether:
    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(request(3) + content(3, LARGEST + 1) + reset(3), id="too large and reset"),
            pytest.param(
                request(3) + content(3, LARGEST + 1) + reset(3) + request(5, "END_STREAM"),
                id="too large, reset and forgotten",
            ),
            pytest.param(request(3, "END_STREAM") + reset(3), id="asked and reset"),
        ],
    )
    async def test_a_reset_request_does_not_cost_others_their_answers(self, data: bytes) -> None:
        """Before, an error of h2 ended the whole connection: nothing can be sent on what was reset."""
        conversation = Conversation(Transport())
        await conversation.begin()
        await conversation.say(data)
        await self._is_answered(conversation)

    @pytest.mark.parametrize("after", [b"", request(5, "END_STREAM")], ids=["nothing", "another one"])
    async def test_nor_one_that_was_reset_while_its_answer_went_out(self, after: bytes) -> None:
        conversation = Conversation(Transport())
        await conversation.begin(window=LENGTH - 1)
        await conversation.say(more_room(HELD, 1) + request(3, "END_STREAM"))
        await conversation.say(more_room(3, 1) + reset(3) + after)
        await self._is_answered(conversation)

    @pytest.mark.parametrize("after", [b"", request(5)], ids=["nothing", "another one"])
    async def test_nor_one_that_came_while_it_takes_no_more(self, after: bytes) -> None:
        conversation = Conversation(Transport())
        await conversation.begin()
        conversation.requests.drain()
        await conversation.say(request(3) + reset(3) + after)
        assert not conversation.transport.is_closed
        conversation.answers.free.set()
        await conversation.go_on()
        assert conversation.heard() == LENGTH
        assert conversation.transport.is_closed

    async def test_what_was_taken_back_at_once_is_not_begun(self) -> None:
        conversation = Conversation(Transport())
        await conversation.begin()
        await conversation.say(request(3, "END_STREAM") + reset(3))
        assert len(conversation.answers.requests_seen) == 1

    @pytest.mark.parametrize(
        "data",
        [
            pytest.param(request(5) + content(5, LARGEST + 1), id="too large"),
            pytest.param(more_room(3, 1), id="more room"),
        ],
    )
    async def test_who_goes_is_not_answered_any_more(self, data: bytes) -> None:
        conversation = Conversation(Transport())
        await conversation.begin(window=LENGTH - 1)
        await conversation.say(request(3, "END_STREAM"))
        await conversation.say(data + wire(GoAwayFrame(0)))
        assert conversation.transport.is_closed

    async def _is_answered(self, conversation: Conversation) -> None:
        conversation.answers.free.set()
        await conversation.go_on()
        assert conversation.heard() == LENGTH
        assert not conversation.transport.is_closed


async def test_more_headers_than_are_taken_are_not_decoded() -> None:
    """Decoding 16 MiB of them kept everybody waiting for 8 s, only to find that they are too many.

    These say next to nothing: each byte sets the size of the table of headers. Source: RFC 7541, 6.3.
    """
    conversation = Conversation(Transport())
    await conversation.begin()
    frame = HeadersFrame(3, data=b"\x20" * MAX_HEADERS + Encoder().encode(GOOD))
    await conversation.say(wire(frame, ["END_HEADERS", "END_STREAM"]))
    assert len(conversation.answers.requests_seen) == 1
    assert conversation.transport.is_closed


class TestRoom:
    """Each of hundreds of answers that wait was looked at, and written, once for every frame that gives room:
    31 KiB of them kept everybody waiting for a second."""

    WAITING = 100

    @pytest.mark.parametrize(
        "frame",
        [
            pytest.param(more_room(0, 1), id="connection"),
            pytest.param(more_room(3, 1), id="stream"),
            pytest.param(wire(SettingsFrame(0, settings={})), id="settings"),
        ],
    )
    async def test_much_of_it_in_small_pieces_is_looked_at_once(
        self, monkeypatch: pytest.MonkeyPatch, frame: bytes
    ) -> None:
        conversation = await self._waiting()
        looked: list[int] = []
        window = ServerFrames.local_flow_control_window

        def counted(frames: ServerFrames, number: int) -> int:
            looked.append(number)
            return cast("int", window(frames, number))

        monkeypatch.setattr(ServerFrames, "local_flow_control_window", counted)
        await conversation.say(frame * 1000)
        assert len(looked) <= 2 * self.WAITING

    async def test_what_it_lets_go_is_written_together(self) -> None:
        conversation = await self._waiting()
        conversation.transport.writes = 0
        await conversation.say(wire(SettingsFrame(0, settings={INITIAL_WINDOW: 1})))
        assert conversation.transport.writes < 5

    async def _waiting(self) -> Conversation:
        """Answers wait for room."""
        conversation = Conversation(Transport())
        await conversation.begin(window=0)
        for at in range(self.WAITING):
            await conversation.say(request(2 * at + 3, "END_STREAM"))
        return conversation


class TestUntaken:
    async def test_a_refusal_that_nobody_takes_is_given_up(self) -> None:
        """Its request had an end, which ended the waiting for its answer, too: it was kept for ever."""
        conversation = Conversation(Transport(), write=0.05)
        await conversation.begin(window=0)
        conversation.answers.free.set()
        await conversation.say(request(3) + content(3, LARGEST + 1))
        await conversation.say(content(3, 1, "END_STREAM"))
        await asyncio.wait_for(conversation.owner.freed.wait(), 30)

    async def test_answers_that_waited_are_written_as_the_client_reads(self) -> None:
        """All at once they would be in memory twice, however many there are."""
        transport = SlowTransport(room=3 * LENGTH)
        conversation = Conversation(transport)
        transport.protocol = conversation.requests
        await conversation.begin(window=0)
        for number in range(3, 43, 2):
            await conversation.say(request(number, "END_STREAM"))
        await conversation.say(
            more_room(0, 1000 * LENGTH) + wire(SettingsFrame(0, settings={INITIAL_WINDOW: 2 * LENGTH}))
        )
        assert len(transport.written) < 5 * LENGTH
        for _ in range(10):
            transport.written = b""
            conversation.requests.resume_writing()
        assert conversation.owner.is_used
        conversation.answers.free.set()
        await conversation.go_on()
        assert not conversation.owner.is_used

    async def test_who_asks_for_acknowledgements_and_does_not_read_them_is_broken_off(self) -> None:
        conversation = Conversation(Transport())
        await conversation.begin()
        pings = wire(PingFrame(0, opaque_data=b"12345678")) * 1000
        conversation.requests.pause_writing()
        await conversation.say(pings)
        assert not conversation.owner.is_broken_off
        for _ in range(MAX_UNREAD_BYTES // len(pings) + 1):
            await conversation.say(pings)
        assert conversation.owner.is_broken_off

    async def test_who_reads_them_may_ask_for_any_number(self) -> None:
        conversation = Conversation(Transport())
        await conversation.begin()
        pings = wire(PingFrame(0, opaque_data=b"12345678")) * 1000
        for _ in range(2 * MAX_UNREAD_BYTES // len(pings)):
            conversation.requests.pause_writing()
            await conversation.say(pings)
            conversation.requests.resume_writing()
        assert not conversation.owner.is_broken_off
