"""Binds against an API server that fails in every way: never two shares, never one lost."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, Answer, FakeApi, cut, fake_api, status
from tests.samples.extender import ANNOTATION, RESOURCE, inventory, news, pod

from gpushare_core.books.dialects import GPUSHARE
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.delivery import Times
from gpushare_extender.decide.requests import NeedsMemory, read_needs
from gpushare_extender.http.wire import BindArgs, PodSpec
from gpushare_extender.ledger.ledger import Ledger

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
POD = "/api/v1/namespaces/default/pods/a"
BINDING = f"{POD}/binding"


class Clock:
    """Time that passes only by sleeping, and then at once."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(PODS, pod("a", units=4))
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials(), timeout=2.0) as opened:
        yield opened


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger() -> Ledger:
    books = Ledger()
    books.replace_inventories([inventory("n1"), inventory("n2")])
    return books


@pytest.fixture
def binder(client: KubeClient, ledger: Ledger, clock: Clock) -> Binder:
    times = Times(clock=clock, now=lambda: NOW, sleep=clock.sleep, answer_within=2.0, settle=12.0)
    return Binder(client, ledger, NeedsMemory(), GPUSHARE, times)


def wish(name: str = "a", *, node: str = "n1", uid: str = "") -> BindArgs:
    return BindArgs(pod_name=name, pod_namespace="default", node=node, pod_uid=uid or f"uid-{name}")


def used(ledger: Ledger, node: str = "n1") -> int:
    books = ledger.node(node)
    return sum(card.allocated for card in books.cards()) if books else 0


def allocation(api: FakeApi, name: str = "a") -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(api.pod(name)["metadata"]["annotations"][ANNOTATION])
    return decoded


async def test_node_and_annotation_land_together(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    assert await binder.bind(wish()) == ""
    assert api.pod("a")["spec"]["nodeName"] == "n1"
    assert allocation(api) == {
        "node": "n1",
        "at": "2026-11-21T10:00:00Z",
        "unit": "1Gi",
        "containers": {"main": {"n1-0": 4}},
        "cards": {"n1-0": 4},
        "cpu": "500m",
        "memory": "256Mi",
    }
    assert (used(ledger), ledger.is_in_flight("uid-a")) == (4, False)


async def test_a_pod_known_from_its_filter_is_not_read(api: FakeApi, binder: Binder) -> None:
    binder.memory.remember("uid-a", read_needs(_spec(pod("a")["spec"]), resource=RESOURCE))
    assert await binder.bind(wish()) == ""
    assert [each.method for each in api.seen] == ["POST"]
    assert binder.memory.recall("uid-a") is None


def _spec(spec: dict[str, Any]) -> PodSpec:
    return msgspec.convert(spec, PodSpec)


async def test_a_pod_that_asks_for_nothing_of_ours_is_bound_plainly(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    api.put(PODS, pod("plain", units=None))
    assert await binder.bind(wish("plain", node="elsewhere")) == ""
    assert api.pod("plain")["spec"]["nodeName"] == "elsewhere"
    assert api.pod("plain")["metadata"]["annotations"] == {}
    assert used(ledger) == 0


@pytest.mark.parametrize(
    ("args", "error"),
    [
        pytest.param(wish("nobody"), "cannot read the pod", id="no such pod"),
        pytest.param(wish(uid="former"), "another one has its name now", id="recreated pod"),
        pytest.param(wish(node="n9"), "does not share GPU cards", id="not a node of ours"),
        pytest.param(BindArgs("a", "default", "n1", ""), "needs PodName", id="no UID"),
    ],
)
async def test_a_bind_that_cannot_be_is_refused(
    binder: Binder, ledger: Ledger, args: BindArgs, error: str
) -> None:
    assert error in await binder.bind(args)
    assert used(ledger) == 0


async def test_without_room_nothing_is_sent(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    ledger.set_pod(news("x", c0=13, c1=14))
    answer = await binder.bind(wish())
    assert answer == "insufficient GPU memory in one card: asked 4, largest free 3"
    assert api.requests("POST", BINDING) == []


async def test_many_binds_at_once_never_over_commit(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    for index in range(12):
        api.put(PODS, pod(f"p{index}", units=5))
    answers = await asyncio.gather(*(binder.bind(wish(f"p{index}")) for index in range(12)))
    assert answers.count("") == 6, "three of 5 units on each of two cards of 16"
    assert used(ledger) == 30
    cards = [allocation(api, f"p{index}")["cards"] for index, answer in enumerate(answers) if not answer]
    assert sorted(card for each in cards for card in each) == ["n1-0"] * 3 + ["n1-1"] * 3


async def test_two_binds_of_one_pod_are_one(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    answers = await asyncio.gather(binder.bind(wish()), binder.bind(wish()), binder.bind(wish(node="n2")))
    assert list(answers[:2]) == ["", ""]
    assert "bound to node n1 already" in answers[2]
    assert len(api.requests("POST", BINDING)) == 1
    assert (used(ledger), used(ledger, "n2")) == (4, 0)


async def test_a_bind_tried_again_after_success_succeeds(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    assert await binder.bind(wish()) == ""
    assert await binder.bind(wish()) == ""
    assert "already holds GPU memory on node n1" in await binder.bind(wish(node="n2"))
    assert (len(api.requests("POST", BINDING)), used(ledger), used(ledger, "n2")) == (1, 4, 0)


@pytest.mark.parametrize("code", [400, 403, 404, 422])
async def test_a_final_refusal_releases(api: FakeApi, binder: Binder, ledger: Ledger, code: int) -> None:
    api.fail("POST", BINDING, status(code, "by decree"))
    assert "by decree" in await binder.bind(wish())
    assert (used(ledger), api.pod("a")["spec"].get("nodeName")) == (0, None)


def after_binding(api: FakeApi, answer: Answer) -> Answer:
    """A fault: the API server binds the pod, and then its answer goes wrong."""

    async def bind(request: web.Request) -> web.StreamResponse | None:
        api.bind(("default", "a"), await request.json())
        return await answer(request)

    return bind


LOST = [
    pytest.param(cut, id="connection cut"),
    pytest.param(status(500, "etcd timed out"), id="500"),
    pytest.param(status(504, "timeout"), id="504"),
    pytest.param(status(429, "slow down"), id="429"),
    pytest.param(status(409, "conflict"), id="409"),
]


@pytest.mark.parametrize("answer", LOST)
async def test_bound_though_the_answer_was_lost(
    api: FakeApi, binder: Binder, ledger: Ledger, answer: Answer
) -> None:
    api.fail("POST", BINDING, after_binding(api, answer))
    assert await binder.bind(wish()) == ""
    assert (used(ledger), allocation(api)["cards"]) == (4, {"n1-0": 4})


@pytest.mark.parametrize("answer", LOST[:3])
async def test_an_unclear_failure_is_sent_again_while_the_caller_waits(
    api: FakeApi, binder: Binder, ledger: Ledger, answer: Answer
) -> None:
    api.fail("POST", BINDING, answer)
    assert await binder.bind(wish()) == ""
    assert (len(api.requests("POST", BINDING)), used(ledger)) == (2, 4)


@pytest.mark.parametrize("answer", LOST[3:])
async def test_refused_for_now_and_unbound_releases(
    api: FakeApi, binder: Binder, ledger: Ledger, answer: Answer
) -> None:
    api.fail("POST", BINDING, answer)
    assert "not bound" in await binder.bind(wish())
    assert used(ledger) == 0


async def test_units_stay_reserved_as_long_as_a_binding_may_still_land(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: Clock
) -> None:
    """The server takes the Binding, breaks off, and carries it out only seconds later."""
    late: list[Any] = []
    sent = clock.now

    async def keep(request: web.Request) -> web.StreamResponse:
        late.append(await request.json())
        clock.now += 3.0
        return await cut(request)

    async def land(_: web.Request) -> None:
        assert used(ledger) == 4
        if clock.now > sent + 8 and late:
            api.bind(("default", "a"), late.pop())

    api.fail("POST", BINDING, keep)
    api.fail("GET", POD, *[_passing, *[land] * 40])
    assert await binder.bind(wish()) == ""
    assert clock.now > sent + 8
    assert (used(ledger), len(api.requests("POST", BINDING))) == (4, 1)


async def _passing(_: web.Request) -> None:
    return None


async def test_units_are_released_when_a_lost_binding_cannot_land_any_more(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: Clock
) -> None:
    async def swallow(request: web.Request) -> web.StreamResponse:
        clock.now += 3.0
        return await cut(request)

    begun = clock.now
    api.fail("POST", BINDING, swallow)
    assert "the pod is not bound" in await binder.bind(wish())
    assert clock.now >= begun + 12
    assert used(ledger) == 0


async def test_bound_by_somebody_else_releases(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    api.fail("GET", POD, _passing)
    bound = pod("a", units=4, node="n2")
    api.put(PODS, bound)
    assert "bound by somebody else" in await binder.bind(wish())
    assert used(ledger) == 0


async def test_the_pod_went_meanwhile(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    async def vanish(request: web.Request) -> web.StreamResponse:
        api.delete(PODS, "a", "default")
        return await cut(request)

    api.fail("POST", BINDING, vanish)
    assert "gone" in await binder.bind(wish())
    assert used(ledger) == 0


async def test_the_caller_gets_an_answer_though_the_api_server_gives_none(
    api: FakeApi, client: KubeClient, ledger: Ledger
) -> None:
    """The units stay reserved until the server tells; then the waiting flight books what is true."""
    binder = Binder(client, ledger, NeedsMemory(), GPUSHARE, Times(answer_within=0.1))
    free = asyncio.Event()

    async def slow(_: web.Request) -> None:
        await free.wait()

    api.fail("POST", BINDING, slow)
    assert "has not told yet whether the pod is bound to node n1" in await binder.bind(wish())
    assert "has not told yet" in await binder.bind(wish(node="n2")), "joins the flight under way"
    assert (used(ledger), ledger.is_in_flight("uid-a")) == (4, True)
    free.set()
    assert await binder.drain(5.0) == 0
    assert (used(ledger), ledger.is_in_flight("uid-a")) == (4, False)
    assert api.pod("a")["spec"]["nodeName"] == "n1"


async def test_while_the_pod_cannot_be_read_it_asks_on(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    api.fail("GET", POD, _passing, *[status(503, "away")] * 20)
    api.fail("POST", BINDING, after_binding(api, cut), *[cut] * 19)
    assert await binder.bind(wish()) == ""
    assert used(ledger) == 4


async def test_a_server_that_is_not_there_releases_at_once(
    api: FakeApi, ledger: Ledger, clock: Clock, unused_tcp_port: int
) -> None:
    there = api.credentials()
    nowhere = Credentials(f"http://127.0.0.1:{unused_tcp_port}", there.tls, there.token)
    async with KubeClient(nowhere) as client:
        times = Times(clock=clock, sleep=clock.sleep)
        binder = Binder(client, ledger, NeedsMemory(), GPUSHARE, times)
        binder.memory.remember("uid-a", read_needs(_spec(pod("a")["spec"]), resource=RESOURCE))
        assert "was not bound" in await binder.bind(wish())
    assert used(ledger) == 0


async def test_a_watch_that_shows_the_pod_first_is_believed(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    async def show(request: web.Request) -> web.StreamResponse | None:
        api.bind(("default", "a"), await request.json())
        ledger.set_pod(news("uid-a", c0=4))
        ledger.drop_pod("uid-a")
        return web.json_response({}, status=201)

    api.fail("POST", BINDING, show)
    assert await binder.bind(wish()) == ""
    assert used(ledger) == 0, "the pod was deleted before its bind was answered"


async def test_drain_counts_what_does_not_end(api: FakeApi, binder: Binder) -> None:
    assert await binder.drain(0.0) == 0
    free = asyncio.Event()

    async def slow(_: web.Request) -> None:
        await free.wait()

    api.fail("POST", BINDING, slow)
    waiting = asyncio.create_task(binder.bind(wish()))
    await api.stirred("the Binding to be sent", lambda: bool(api.requests("POST", BINDING)))
    assert await binder.drain(0.01) == 1
    free.set()
    assert await waiting == ""
