"""Where an event of a watch ends. kube-scheduler watches pods and nodes as frames of protobuf."""

import asyncio
import ssl

import aiohttp
import msgspec
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from chaos.proxy.fault import ApiFault
from chaos.proxy.framing import PROTOBUF, Framing, framing
from chaos.proxy.server import ApiProxy

from gpushare_core.kube.credentials import Credentials

FRAMES = [b"\x00\x00\x00\x03a\nb", b"\x00\x00\x00\x00", b"\x00\x00\x01\x00" + bytes(256)]
LINES = [b'{"a": 1}\n', b"\n", b'{"b": 2}\n']
SOON = 30.0
TLS = ssl.create_default_context()
EXPIRED = (
    "0000005c0a054552524f5212530a516b3873000a0c0a0276311206537461747573123d12074661696c7572651a266368616f733a20746"
    "869732063616c6c207761732062726f6b656e206f6e20707572706f7365220745787069726564309a03"
)
"""``runtime/serializer/protobuf`` of k8s.io/apimachinery 0.37.2 reads it as a ``Status`` with code 410."""


@pytest.mark.parametrize(
    ("framed", "events"),
    [
        pytest.param(framing(f"{PROTOBUF};stream=watch"), FRAMES, id="protobuf"),
        pytest.param(framing("application/json"), LINES, id="JSON"),
    ],
)
def test_events_are_told_apart_wherever_the_content_is_cut(framed: Framing, events: list[bytes]) -> None:
    content = b"".join(events)
    for cut in range(len(content) + 1):
        first, rest = framed.split(content[:cut])
        others, nothing = framed.split(rest + content[cut:])
        assert ([*first, *others], nothing) == (events, b"")


def test_an_expired_watch_says_so_in_protobuf() -> None:
    assert framing(PROTOBUF).error_event(410).hex() == EXPIRED


async def test_a_frame_passes_while_the_watch_is_open() -> None:
    """None of its bytes need be a newline, and it comes as it is though its program takes gzip."""
    frame, done = b"\x00\x00\x00\x02ab", asyncio.Event()

    async def watch(request: web.Request) -> web.StreamResponse:
        assert request.headers["Accept-Encoding"] == "identity"
        response = web.StreamResponse(headers={"Content-Type": f"{PROTOBUF};stream=watch"})
        await response.prepare(request)
        await response.write(frame)
        await done.wait()
        return response

    app = web.Application()
    app.router.add_get("/api/v1/pods", watch)
    async with TestServer(app, shutdown_timeout=0.1) as real:
        upstream = Credentials(str(real.make_url("")).rstrip("/"), lambda: TLS, lambda: "secret")
        async with (
            ApiProxy(upstream).serving("127.0.0.1", 0) as proxy,
            aiohttp.ClientSession() as client,
            client.get(f"{proxy.url}/api/v1/pods?watch=1") as answer,
        ):
            assert await asyncio.wait_for(answer.content.readexactly(len(frame)), SOON) == frame
            proxy.faults.begin(1, msgspec.convert({"manner": "truncated"}, ApiFault))
            rest = await asyncio.wait_for(answer.content.read(), SOON)
            done.set()
    assert framing(PROTOBUF).split(rest) == ([], rest), "half an event"
