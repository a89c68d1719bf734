"""Partial requests: how much is kept of them, and how large a whole request may be."""

import asyncio
import logging
from collections.abc import Callable
from typing import cast

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from hyperframe.frame import ContinuationFrame, DataFrame, HeadersFrame, RstStreamFrame, SettingsFrame
from tests.fakes.http2_wire import GOOD, PREFACE, Owner, Transport, headers_frame, wire

from gpushare_extender.transport.connection import Connection, Timeouts
from gpushare_extender.transport.http2 import Http2Requests, Http2Service
from gpushare_extender.transport.http2_frames import MAX_FRAME, MAX_HEADERS, READ_WINDOW
from gpushare_extender.transport.messages import Request, Response
from gpushare_extender.transport.partial_requests import MAX_PARTIAL_BYTES, PartialRequestBudget

START = PREFACE + wire(SettingsFrame(0))
SOME = 32 * 1024
"""Bytes that are read at a time."""
_log = logging.getLogger(__name__)


class Conversation:
    """With a client whose requests are answered at once."""

    def __init__(self, budget: PartialRequestBudget | None = None, *, largest: int = 100_000) -> None:
        self.requests_seen: list[Request] = []
        self.owner, self.transport = Owner(), Transport()
        service, timeouts = Http2Service(self._answer, largest), Timeouts(read=60.0, idle=60.0)
        self.requests = Http2Requests(service, self.owner, timeouts, budget)
        self.requests.connection_made(cast("asyncio.Transport", self.transport))

    def _answer(self, request: Request) -> Response:
        self.requests_seen.append(request)
        return Response(b"answer")

    def say(self, *parts: bytes) -> None:
        self.requests.data_received(b"".join(parts))

    def say_in_parts(self, data: bytes) -> int:
        """Returns how much was listened to."""
        for at in range(0, len(data), SOME):
            if self.transport.is_closed:
                return at
            self.say(data[at : at + SOME])
        return len(data)

    def is_reset(self, number: int, error: ErrorCodes) -> bool:
        return wire(RstStreamFrame(number, error_code=error)) in self.transport.written


def begun(number: int) -> bytes:
    return wire(headers_frame(number, GOOD), ["END_HEADERS"])


def part(number: int, size: int, *flags: str) -> bytes:
    return wire(DataFrame(number, data=b"x" * size), flags)


class SendingClient:
    """Sends requests of these sizes side by side, as much as the windows allow."""

    def __init__(self, conversation: Conversation, sizes: list[int]) -> None:
        self._conversation = conversation
        self._http2 = H2Connection(H2Configuration(client_side=True))
        self._http2.initiate_connection()
        self._left = {2 * at + 1: size for at, size in enumerate(sizes)}
        for number in self._left:
            self._http2.send_headers(number, GOOD)
        self._exchange()

    def send(self) -> None:
        """Until no more can be sent."""
        while sum(self._send(number) for number in self._left):
            self._exchange()

    def _send(self, number: int) -> int:
        left = self._left[number]
        if not left:
            return 0
        size = min(self._http2.local_flow_control_window(number), self._http2.max_outbound_frame_size, left)
        if size:
            self._http2.send_data(number, b"x" * size, end_stream=size == left)
            self._left[number] -= size
        return size

    def _exchange(self) -> None:
        """What is answered may be sent on at once."""
        self._conversation.say(self._http2.data_to_send())
        written, self._conversation.transport.written = self._conversation.transport.written, b""
        self._http2.receive_data(written)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([READ_WINDOW + MAX_FRAME], id="one"),
        pytest.param([4_000_000] * 5, id="side by side"),
    ],
)
async def test_requests_may_be_larger_than_the_window(sizes: list[int]) -> None:
    """The window was given back with the whole request: one that was larger never came."""
    conversation = Conversation(largest=max(sizes))
    SendingClient(conversation, sizes).send()
    assert [len(request.content) for request in conversation.requests_seen] == sizes


async def test_one_that_is_too_large_gets_an_error_and_is_not_reset() -> None:
    conversation = Conversation(largest=READ_WINDOW)
    conversation.say(START, begun(1))
    for _ in range(READ_WINDOW // MAX_FRAME + 1):
        conversation.say(part(1, MAX_FRAME))
    assert b"nodeCacheCapable" in conversation.transport.written


class TestFrames:
    """The codec itself looks at sizes once all has come."""

    async def test_one_that_is_too_large_ends_the_connection_before_it_is_there(self) -> None:
        conversation = Conversation()
        conversation.say(START)
        frame = b"\xff\xff\xff\x00\x00\x00\x00\x00\x01" + b"x" * (2**24 - 1)
        assert conversation.say_in_parts(frame) <= MAX_FRAME + 2 * SOME

    async def test_so_do_headers_in_too_many_parts(self) -> None:
        conversation = Conversation()
        conversation.say(START)
        more = wire(ContinuationFrame(1, data=b"\x82" * 1000)) * 60
        assert conversation.say_in_parts(wire(HeadersFrame(1, data=b"")) + more) <= MAX_HEADERS + 2 * SOME

    async def test_the_largest_that_is_allowed_may_come_in_parts(self) -> None:
        conversation = Conversation(largest=MAX_FRAME)
        conversation.say(START, begun(1))
        conversation.say_in_parts(part(1, MAX_FRAME, "END_STREAM"))
        assert [len(request.content) for request in conversation.requests_seen] == [MAX_FRAME]


class TestTogether:
    @pytest.fixture
    def budget(self) -> PartialRequestBudget:
        return PartialRequestBudget(100_000, _log)

    async def test_the_oldest_makes_room_and_may_be_sent_again(self, budget: PartialRequestBudget) -> None:
        old, new = Conversation(budget), Conversation(budget)
        old.say(START, begun(1), part(1, 30_000), begun(3), part(3, 30_000))
        new.say(START, begun(1), part(1, 60_000))
        assert old.is_reset(1, ErrorCodes.REFUSED_STREAM)
        new.say(part(1, 1, "END_STREAM"))
        old.say(part(3, 1, "END_STREAM"))
        assert [len(request.content) for request in (*new.requests_seen, *old.requests_seen)] == [
            60_001,
            30_001,
        ]
        assert budget.total == 0

    async def test_many_small_parts_count_as_what_they_take(self, budget: PartialRequestBudget) -> None:
        conversation = Conversation(budget)
        conversation.say(START, begun(1), part(1, 0) * 2000)
        assert conversation.is_reset(1, ErrorCodes.REFUSED_STREAM)

    async def test_a_frame_that_has_begun_counts_too(self, budget: PartialRequestBudget) -> None:
        conversations = [Conversation(budget) for _ in range(3)]
        for conversation in conversations:
            conversation.say(START, begun(1), part(1, 40_000)[:-1])
        assert [conversation.owner.is_broken_off for conversation in conversations] == [True, False, False]

    async def test_a_larger_request_than_all_may_be_together_comes_all_the_same(self) -> None:
        largest = 2 * MAX_PARTIAL_BYTES
        assert PartialRequestBudget.for_requests(largest, _log).limit == 2 * largest
        assert PartialRequestBudget.for_requests(1, _log).limit == MAX_PARTIAL_BYTES

    async def test_of_http_1_the_connection_ends(self, budget: PartialRequestBudget) -> None:
        connections = [connected(budget) for _ in range(3)]
        for connection, _ in connections:
            for _ in range(4):
                connection.data_received(b"x" * 10_000)
        assert [transport.is_broken_off for _, transport in connections] == [True, False, False]
        connections[1][0].request_read()
        connections[2][0].connection_lost(None)
        assert budget.total == 0

    @pytest.mark.parametrize(
        "end",
        [
            pytest.param(lambda conversation: conversation.say(part(1, 1, "END_STREAM")), id="complete"),
            pytest.param(lambda conversation: conversation.say(part(1, 99_000)), id="too large"),
            pytest.param(lambda conversation: conversation.say(wire(RstStreamFrame(1))), id="reset"),
            pytest.param(
                lambda conversation: conversation.requests.connection_lost(None), id="connection lost"
            ),
            pytest.param(lambda conversation: conversation.requests.end(), id="connection ended"),
            pytest.param(
                lambda conversation: conversation.say(b"\x00\x00\x01\x06" + bytes(6)), id="no HTTP/2"
            ),
        ],
    )
    async def test_nothing_is_counted_when_it_is_over(
        self, budget: PartialRequestBudget, end: Callable[[Conversation], None]
    ) -> None:
        conversation = Conversation(budget, largest=90_000)
        conversation.say(START, begun(1), part(1, 1000))
        assert budget.total > 1000
        end(conversation)
        assert budget.total == 0


class BreakableTransport(asyncio.Transport):
    """Of nothing; tells whether it was broken off."""

    is_broken_off = False

    def abort(self) -> None:
        self.is_broken_off = True


class _Listener:
    """To whom all connections are alike."""

    def made(self, connection: Connection) -> None: ...
    def used(self, connection: Connection) -> None: ...
    def lost(self, connection: Connection) -> None: ...


def connected(budget: PartialRequestBudget) -> tuple[Connection, BreakableTransport]:
    transport = BreakableTransport()
    connection = Connection(lambda *_: asyncio.Protocol(), _Listener(), Timeouts(), budget)
    connection.connection_made(transport)
    return connection, transport
