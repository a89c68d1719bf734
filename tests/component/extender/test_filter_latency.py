"""The benchmark calls the extender as kube-scheduler does: mutual TLS, one connection."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from bench.cluster_objects import Layout, node_name
from bench.filter_latency import Caller, WrongAnswerError, measure, mutual_tls
from tests.fakes.extender_keys import PAIRS, KeyFolder
from tests.fakes.open_port import listening

from gpushare_extender.http.connection import read_in_time
from gpushare_extender.http.tls import ServerTls

LAYOUT = Layout(nodes=4)


class FakeExtender:
    """Passes ``passing``, and notes which connections it is asked on."""

    def __init__(self, passing: list[str]) -> None:
        self.passing = passing
        self.callers: set[object] = set()

    async def filter(self, request: web.Request) -> web.Response:
        assert request.transport is not None
        self.callers.add(request.transport.get_extra_info("peername"))
        return web.json_response({"NodeNames": self.passing})


@pytest.fixture
def extender() -> FakeExtender:
    return FakeExtender([node_name(index) for index in range(4) if LAYOUT.most_free(index) >= 1])


@pytest.fixture
async def caller(tmp_path: Path, extender: FakeExtender) -> AsyncIterator[Caller]:
    keys = KeyFolder(tmp_path)
    keys.write("first")
    client = tmp_path / "client.pem"
    client.write_bytes((PAIRS / "first/client.key").read_bytes() + (PAIRS / "first/client.pem").read_bytes())
    app = web.Application(middlewares=[read_in_time])
    app.router.add_post("/gpushare/filter", extender.filter)
    async with listening(app, host="127.0.0.1", port=0, tls=ServerTls(keys.files), drain=0.1) as port:
        tls = mutual_tls(client=client, authorities=PAIRS / "first/ca.pem")
        with contextlib.closing(Caller(f"https://127.0.0.1:{port}", tls)) as caller:
            yield caller


async def test_all_calls_go_over_one_connection(caller: Caller, extender: FakeExtender) -> None:
    latency = await asyncio.to_thread(measure, caller, LAYOUT, names=4, units=1, count=20)
    assert (latency.names, latency.fitting, latency.passing) == (4, 4, len(extender.passing))
    assert len(extender.callers) == 1


async def test_as_many_pass_as_the_policy_offers(caller: Caller, extender: FakeExtender) -> None:
    extender.passing = extender.passing[:2]
    latency = await asyncio.to_thread(measure, caller, LAYOUT, names=4, units=1, count=2, candidates=2)
    assert (latency.fitting, latency.passing) == (4, 2)


async def test_a_wrong_answer_is_no_measurement(
    caller: Caller, extender: FakeExtender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench.filter_latency.DEADLINE", 0.0)
    extender.passing = ["nobody"]
    with pytest.raises(WrongAnswerError, match="1 nodes pass"):
        await asyncio.to_thread(measure, caller, LAYOUT, names=4, units=1)


def test_plain_http_is_not_how_the_scheduler_calls() -> None:
    with pytest.raises(ValueError, match="is no URL such as https://"):
        Caller("http://127.0.0.1:22766", ssl.create_default_context())
