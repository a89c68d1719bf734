"""The benchmark calls the extender as kube-scheduler does: mutual TLS, one connection of HTTP/2."""

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from bench.cluster.cluster_objects import Layout, node_name
from bench.filter_latency import Caller, WrongAnswerError, measure, mutual_tls
from tests.fakes.extender_keys import PAIRS, KeyFolder
from tests.fakes.open_port import listening

from gpushare_extender.transport.http2 import Http2Service
from gpushare_extender.transport.listener import PROTOCOLS
from gpushare_extender.transport.messages import Request, Response, json_response
from gpushare_extender.transport.tls import ServerTls

LAYOUT = Layout(nodes=4)


class FakeExtender:
    """Passes ``passing``; speaks HTTP/2 alone."""

    def __init__(self, passing: list[str]) -> None:
        self.passing = passing
        self.is_broken = False

    def answer(self, request: Request) -> Response:
        if self.is_broken:
            raise RuntimeError("a defect")
        if request.method == "GET":
            return json_response({"name": request.name})
        assert (request.path, request.client_authenticated) == ("/gpushare/filter", True)
        return json_response({"NodeNames": self.passing, "FailedNodes": {"size": str(len(request.content))}})


@pytest.fixture
def extender() -> FakeExtender:
    return FakeExtender([node_name(index) for index in range(4) if LAYOUT.most_free(index) >= 1])


def _keys(folder: Path) -> tuple[KeyFolder, Path]:
    """Returns the extender's keys, and the caller's pair."""
    keys = KeyFolder(folder)
    keys.write("first")
    client = folder / "client.pem"
    client.write_bytes((PAIRS / "first/client.key").read_bytes() + (PAIRS / "first/client.pem").read_bytes())
    return keys, client


@pytest.fixture
async def caller(tmp_path: Path, extender: FakeExtender) -> AsyncIterator[Caller]:
    keys, client = _keys(tmp_path)
    serving = ServerTls(keys.files, protocols=PROTOCOLS)
    http2 = Http2Service(extender.answer, max_request=2**22)
    async with listening(
        web.Application(), host="127.0.0.1", port=0, tls=serving, drain=0.1, http2=http2
    ) as port:
        tls = mutual_tls(client=client, authorities=PAIRS / "first/ca.pem")
        with contextlib.closing(Caller(f"https://127.0.0.1:{port}", tls)) as caller:
            yield caller


async def test_all_calls_go_over_one_connection(
    caller: Caller, extender: FakeExtender, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[object] = []

    def connect(*address: object) -> socket.socket:
        opened.append(address)
        return socket.create_connection(*address)  # type: ignore[arg-type]

    monkeypatch.setattr("bench.filter_latency.connect", connect)
    latency = await asyncio.to_thread(measure, caller, LAYOUT, names=4, units=1, count=20)
    assert (latency.names, latency.fitting, latency.passing) == (4, 4, len(extender.passing))
    assert len(opened) == 1


async def test_a_request_of_many_names_comes_in_full(caller: Caller) -> None:
    body = b"x" * 2**20
    _, answer = await asyncio.to_thread(caller.filter, body)
    assert json.loads(answer)["FailedNodes"] == {"size": str(len(body))}


async def test_what_the_ledger_has_of_a_node_is_asked_on_the_same_connection(caller: Caller) -> None:
    assert await asyncio.to_thread(caller.inspect, "gpu-1") == {"name": "gpu-1"}


async def test_an_extender_that_does_not_answer_is_an_error_and_another_call_connects_anew(
    caller: Caller, extender: FakeExtender
) -> None:
    extender.is_broken = True
    with pytest.raises(ConnectionError, match="gives no answer"):
        await asyncio.to_thread(caller.filter, b"x")
    extender.is_broken = False
    caller.close()
    await asyncio.to_thread(caller.filter, b"x")


async def test_an_extender_without_http2_is_an_error(tmp_path: Path) -> None:
    keys, client = _keys(tmp_path)
    async with listening(
        web.Application(), host="127.0.0.1", port=0, tls=ServerTls(keys.files), drain=0.1
    ) as port:
        tls = mutual_tls(client=client, authorities=PAIRS / "first/ca.pem")
        caller = Caller(f"https://127.0.0.1:{port}", tls)
        with pytest.raises(ConnectionError, match="does not speak HTTP/2"):
            await asyncio.to_thread(caller.filter, b"x")


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
