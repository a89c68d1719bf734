"""HTTP/2 of whatever frames: each connection goes on, or ends in good order; nothing is raised."""

import asyncio
import logging
from typing import cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived
from hpack import Encoder
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    GoAwayFrame,
    PingFrame,
    PriorityFrame,
    PushPromiseFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import example, given
from hypothesis import strategies as st
from tests.fakes.http2_wire import GOOD, PREFACE, Owner, Transport, headers_frame, wire
from tests.fuzz.fuzzing import fuzzes

from gpushare_extender.transport.connection import Timeouts
from gpushare_extender.transport.http2 import Http2Requests, Http2Service
from gpushare_extender.transport.messages import Request, Response
from gpushare_extender.transport.partial_requests import PartialRequestBudget

_log = logging.getLogger(__name__)
MAX_REQUEST = 1000
START = PREFACE + wire(SettingsFrame(0))
WHOLE = ["END_STREAM", "END_HEADERS"]

numbers = st.sampled_from([0, 1, 3, 5, 7, 9, 2, 2**31 - 1])
words = st.sampled_from(
    [
        *GOOD,
        (":path", "/x?y"),
        (":status", "200"),
        ("content-length", "5"),
        ("connection", "close"),
        ("X", "y"),
    ]
)
lists = st.one_of(st.just(GOOD), st.lists(words, max_size=6))
flags = st.lists(st.sampled_from(["END_STREAM", "END_HEADERS", "PADDED", "PRIORITY", "ACK"]), max_size=3)
settings = st.dictionaries(st.sampled_from([1, 2, 3, 4, 5, 6, 8, 99]), st.integers(0, 2**31), max_size=3)
amounts = st.sampled_from([1, 100, 65535, 2**31 - 1])

frames = st.one_of(
    st.builds(headers_frame, numbers, lists),
    st.builds(lambda number, data: DataFrame(number or 1, data=data), numbers, st.binary(max_size=2000)),
    st.builds(lambda found: SettingsFrame(0, settings=found), settings),
    st.builds(lambda number, amount: WindowUpdateFrame(number, window_increment=amount), numbers, amounts),
    st.builds(lambda number, code: RstStreamFrame(number or 1, error_code=code), numbers, st.integers(0, 20)),
    st.builds(lambda data: PingFrame(0, opaque_data=data), st.binary(min_size=8, max_size=8)),
    st.builds(lambda number: PriorityFrame(number or 1, depends_on=3), numbers),
    st.builds(lambda code: GoAwayFrame(0, last_stream_id=1, error_code=code), st.integers(0, 20)),
    st.builds(lambda number: ContinuationFrame(number or 1, data=Encoder().encode(GOOD)), numbers),
    st.builds(lambda number: PushPromiseFrame(number or 1, promised_stream_id=2), numbers),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[bytes]:
    """What comes, in the parts in which it comes; most begin as they should."""
    content = PREFACE if draw(st.integers(0, 9)) else draw(st.binary(max_size=30))
    if draw(st.integers(0, 9)):
        content += wire(SettingsFrame(0), [])
    for frame in draw(st.lists(frames, max_size=8)):
        content += wire(frame, draw(flags))
    changed = bytearray(content)
    for at in draw(st.lists(st.integers(0, 400), max_size=2)):
        if at < len(changed):
            changed[at] ^= 1 << draw(st.integers(0, 7))
    cut = draw(st.integers(0, len(changed)))
    return [bytes(changed[:cut]), bytes(changed[cut:])]


async def answered(request: Request) -> Response:
    await asyncio.sleep(0)
    return Response(request.content * 100)


async def spoken(parts: list[bytes], *, drains: bool = False) -> Transport:
    transport, owner = Transport(), Owner()
    budget = PartialRequestBudget(MAX_REQUEST, _log)
    requests = Http2Requests(Http2Service(answered, MAX_REQUEST), owner, Timeouts(read=5.0, idle=5.0), budget)
    requests.connection_made(cast("asyncio.Transport", transport))
    for part in parts:
        if part and not transport.is_closed:
            requests.data_received(part)
            if drains:
                requests.drain()
            requests.pause_writing()
            await asyncio.sleep(0)
            requests.resume_writing()
    for _ in range(20):
        await asyncio.sleep(0)
    requests.connection_lost(None)
    assert budget.total == 0
    return transport


@fuzzes(Http2Requests.data_received)
@given(conversations(), st.booleans())
@example([PREFACE, wire(SettingsFrame(0)) + wire(headers_frame(1, GOOD), ["END_HEADERS"])], False)  # noqa: FBT003
@example([START + wire(headers_frame(1, GOOD), WHOLE) * 2, b""], False)  # noqa: FBT003
@example(
    [
        START + wire(headers_frame(1, GOOD), WHOLE),
        wire(headers_frame(3, GOOD), WHOLE) + wire(RstStreamFrame(3)),
    ],
    True,  # noqa: FBT003
)
def test_whatever_comes_nothing_is_raised(parts: list[bytes], drains: bool) -> None:  # noqa: FBT001
    asyncio.run(spoken(parts, drains=drains))


def test_a_good_request_is_answered_there() -> None:
    """So that the test above tells something."""
    client = H2Connection(H2Configuration(client_side=True))
    client.initiate_connection()
    client.send_headers(1, GOOD, end_stream=False)
    client.send_data(1, b"x", end_stream=True)
    transport = asyncio.run(spoken([client.data_to_send()]))
    assert any(isinstance(event, ResponseReceived) for event in client.receive_data(transport.written))
