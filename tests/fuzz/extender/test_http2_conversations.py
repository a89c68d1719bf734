"""HTTP/2 with a client that keeps to the rules: each request has its own answer, whole and once."""

import asyncio
import random
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import DataReceived, Event, ResponseReceived, StreamEnded
from h2.settings import SettingCodes
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.http2_wire import GOOD, Owner, Transport
from tests.fuzz.fuzzing import fuzzes

from gpushare_extender.transport.connection import Timeouts
from gpushare_extender.transport.http2 import Http2Requests, Http2Service
from gpushare_extender.transport.messages import Request, Response

LARGEST = 20_000
REPEATED = 7
LONGEST = 200
"""Turns until all is answered."""


class Client:
    """Does what comes to its mind, by ``chance``."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.transport, self.owner = Transport(), Owner()
        self.requests = Http2Requests(
            Http2Service(self._answer, LARGEST), self.owner, Timeouts(read=60.0, idle=60.0)
        )
        self.requests.connection_made(cast("asyncio.Transport", self.transport))
        self.http2 = H2Connection(H2Configuration(client_side=True))
        self.http2.initiate_connection()
        self.asked: dict[int, bytes] = {}
        self.unsent: dict[int, bytes] = {}
        self.answers: dict[int, bytes] = {}
        self.statuses: dict[int, bytes] = {}
        self.ended: list[int] = []
        self.reset: set[int] = set()
        self._owed: list[tuple[int, int]] = []

    async def _answer(self, request: Request) -> Response:
        for _ in range(self.chance.randrange(4)):
            await asyncio.sleep(0)
        return Response(request.content * REPEATED)

    def act(self) -> None:
        """One thing or another."""
        actions = (self._ask, self._ask, self.send, self.send, self._take_back, self._resize, self.take)
        self.chance.choice(actions)()
        self.chance.choice((self.requests.pause_writing, self.requests.resume_writing))()

    def _ask(self) -> None:
        number = self.http2.get_next_available_stream_id()
        length = self.chance.choice([1, 100, 5000, LARGEST, LARGEST + 1])
        self.asked[number] = self.unsent[number] = (b"%d:" % number).ljust(length, b"z")[:length]
        self.http2.send_headers(number, GOOD)

    def send(self) -> None:
        """A part of each, as far as the server takes it."""
        for number, rest in [*self.unsent.items()]:
            room = min(self.http2.local_flow_control_window(number), 16_000)
            size = min(len(rest), self.chance.choice([1, room, room]))
            self.http2.send_data(number, rest[:size], end_stream=size == len(rest))
            self.unsent[number] = rest[size:]
            if size == len(rest):
                del self.unsent[number]

    def _take_back(self) -> None:
        left = [stream for stream in self.asked if stream not in self.ended and stream not in self.reset]
        if left and self.chance.random() < 0.3:
            number = self.chance.choice(left)
            self.http2.reset_stream(number)
            self.reset.add(number)
            self.unsent.pop(number, None)

    def _resize(self) -> None:
        self.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: self.chance.choice([0, 500, 10**6])})

    def take(self) -> None:
        """Makes room for what has not come yet."""
        for length, number in self._owed:
            self.http2.acknowledge_received_data(length, number)
        self._owed.clear()

    async def exchange(self) -> None:
        """What both have to say, in parts."""
        for _ in range(self.chance.randrange(1, 4)):
            await asyncio.sleep(0)
        written, self.transport.written = self.transport.written, b""
        for event in self.http2.receive_data(written):
            self._hear(event)
        said = self.http2.data_to_send()
        cut = self.chance.randrange(len(said) + 1)
        for part in (said[:cut], said[cut:]):
            self.requests.data_received(part)

    def _hear(self, event: Event) -> None:
        match event:
            case ResponseReceived():
                self.statuses[event.stream_id] = dict(event.headers)[b":status"]
            case DataReceived():
                self.answers[event.stream_id] = self.answers.get(event.stream_id, b"") + event.data
                self._owed.append((event.flow_controlled_length, event.stream_id))
            case StreamEnded():
                self.ended.append(event.stream_id)
                self.unsent.pop(event.stream_id, None)

    async def finish(self) -> None:
        """Lets all that is asked come to its end."""
        self.http2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10**6})
        for _ in range(LONGEST):
            self.requests.resume_writing()
            self.send()
            self.take()
            await self.exchange()


async def conversation(chance: random.Random) -> Client:
    client = Client(chance)
    await client.exchange()
    await client.exchange()
    for _ in range(chance.randrange(40)):
        client.act()
        if chance.random() < 0.6:
            await client.exchange()
    await client.finish()
    return client


@fuzzes(Http2Requests.data_received)
@given(st.randoms(use_true_random=True))
def test_each_is_answered_with_its_own(chance: random.Random) -> None:
    client = asyncio.run(conversation(chance))
    for number, content in client.asked.items():
        if number in client.reset:
            continue
        assert client.ended.count(number) == 1
        if len(content) <= LARGEST:
            assert client.answers[number] == content * REPEATED
        else:
            assert client.statuses[number] == b"413"
    assert not client.owner.is_used
    assert not client.owner.is_broken_off
