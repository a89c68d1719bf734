"""Binds against an API server that fails in every way: never two shares, never one lost."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.fakes.api_server import PODS, Answer, FakeApi, cut, json_answer, passing, status
from tests.fakes.extender_clock import FakeClock
from tests.fakes.following_extender import permitted
from tests.fakes.leaping_time import leap
from tests.samples.extender import (
    ANNOTATION,
    RESOURCE,
    pod_json,
    pod_request,
    pod_update,
    reference,
    share_node,
)

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.placement.card_choice import ChoiceReason
from gpushare_core.placement.modes.table import MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unreleased_pods import UNRELEASED_SECONDS
from gpushare_core.scheduling.objects.pod import PodVersion
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.stale_reservations import StaleReservations
from gpushare_extender.decide.waiting.expected_requests import ExpectedRequest
from gpushare_extender.main import kube_client

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
POD = "/api/v1/namespaces/default/pods/a"
BINDING = f"{POD}/binding"


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1"), share_node("n2")])
    return ledger


@pytest.fixture
def binder(client: KubeClient, ledger: Ledger, clock: FakeClock) -> Binder:
    return Binder(client, ledger, permitted, timing(clock, answer_within=60.0))


@pytest.fixture
def hurried_binder(client: KubeClient, ledger: Ledger, clock: FakeClock) -> Binder:
    """Has to answer its callers before it is certain that a Binding will not take effect."""
    return Binder(client, ledger, permitted, timing(clock, answer_within=2.0))


def timing(clock: FakeClock, *, answer_within: float) -> BindTiming:
    """The callers themselves wait by the real clock."""
    return BindTiming(
        clock=clock, now=lambda: NOW, sleep=clock.sleep, answer_within=answer_within, uncertain_for=12.0
    )


def used(ledger: Ledger, node: str = "n1") -> int:
    sums = ledger.node(node)
    return sum(card.allocated for card in sums.cards()) if sums else 0


def allocation(api: FakeApi, name: str = "a") -> Json:
    decoded: Json = json.loads(api.pod(name)["metadata"]["annotations"][ANNOTATION])
    return decoded


async def test_node_and_annotation_land_together(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    assert await binder.bind(reference(), "n1") == ""
    assert api.pod("a")["spec"]["nodeName"] == "n1"
    assert allocation(api) == {
        "node": "n1",
        "uid": "uid-a",
        "at": "2026-11-21T10:00:00Z",
        "unit": "1Gi",
        "containers": {"main": {"n1-0": 4}},
        "resource": "memory",
        "cards": {"n1-0": 4},
        "cpu": "500m",
        "memory": "256Mi",
    }
    assert (used(ledger), ledger.reservations.is_unconfirmed("uid-a")) == (4, False)


class TestTheReasonOfACard:
    async def test_is_logged(
        self, api: FakeApi, binder: Binder, ledger: Ledger, caplog: pytest.LogCaptureFixture
    ) -> None:
        ledger.set_pod(pod_update("b", c1=4))
        with caplog.at_level("INFO"):
            assert await binder.bind(reference(), "n1") == ""
        (line,) = [record for record in caplog.records if record.message.startswith("bound")]
        assert line.message == "bound: tightest card that fits"
        assert (line.levelname, line.pod, line.node, line.card) == ("INFO", "default/a", "n1", "n1-1")  # type: ignore[attr-defined]
        assert allocation(api)["cards"] == {"n1-1": 4}

    async def test_is_remembered_of_a_pod_that_is_bound(self, binder: Binder, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("b", c1=14))
        assert await binder.bind(reference(), "n1") == ""
        assert binder.choices == {"uid-a": {"n1-0": ChoiceReason.ONLY}}

    async def test_is_that_of_the_first_bind_where_its_end_was_not_known(
        self, binder: Binder, ledger: Ledger
    ) -> None:
        ledger.reserve(reference(), node="n1", request=pod_request(4))
        ledger.reservations.abandon("uid-a", now=-100.0)
        ledger.set_pod(pod_update("b", c1=16))
        assert await binder.bind(reference(), "n1") == ""
        assert binder.choices == {"uid-a": {"n1-0": ChoiceReason.FIRST}}

    async def test_is_none_of_a_pod_that_is_not_bound(self, api: FakeApi, binder: Binder) -> None:
        api.fail("POST", BINDING, status(400, "by decree"))
        assert await binder.bind(reference(), "n1") != ""
        assert not binder.choices


async def test_slices_are_bound_on_distinct_cards(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    halves = share_node("n1", 2, 2, 2, mode=MODES["Slices"], unit="1/2 card")
    ledger.set_share_node(halves)
    pod = pod_json("a", units=None)
    pod["spec"]["containers"] += [
        {"name": name, "resources": {"limits": {"gpushare.io/slice": amount}}}
        for name, amount in (("one", "1"), ("two", "2"))
    ]
    api.put(PODS, pod)
    assert await binder.bind(reference(), "n1") == ""
    written = allocation(api)
    assert (written["resource"], written["unit"]) == ("slice", "1/2 card")
    assert written["containers"] == {"one": {"n1-0": 1}, "two": {"n1-1": 1, "n1-2": 1}}
    assert written["cards"] == {"n1-0": 1, "n1-1": 1, "n1-2": 1}


@pytest.mark.parametrize(
    ("limits", "refusal"),
    [
        pytest.param({"gpushare.io/slice": "1"}, "that serve gpushare.io/memory", id="another class"),
        pytest.param(
            {"gpushare.io/slice": "1", RESOURCE: "1"}, "ask for each of them in a container", id="two classes"
        ),
    ],
)
async def test_what_the_node_does_not_serve_is_not_bound(
    api: FakeApi, binder: Binder, limits: dict[str, str], refusal: str
) -> None:
    pod = pod_json("a", units=None)
    pod["spec"]["containers"][0]["resources"]["limits"] = limits
    api.put(PODS, pod)
    assert refusal in await binder.bind(reference(), "n1")
    assert not api.pod("a")["spec"].get("nodeName")


async def test_the_pod_is_read_from_the_api_servers_cache(api: FakeApi, binder: Binder) -> None:
    assert await binder.bind(reference(), "n1") == ""
    assert [(request.method, request.query.get("resourceVersion")) for request in api.seen] == [
        ("GET", "0"),
        ("POST", None),
    ]


@pytest.mark.parametrize(
    "stale",
    [
        pytest.param(status(404), id="not in the cache yet"),
        pytest.param(json_answer(pod_json("a", uid="former", units=1)), id="the one before of that name"),
    ],
)
async def test_a_cache_that_lags_is_not_believed(api: FakeApi, binder: Binder, stale: Answer) -> None:
    api.fail("GET", POD, stale)
    assert await binder.bind(reference(), "n1") == ""
    assert [request.query.get("resourceVersion") for request in api.requests("GET", POD)] == ["0", None]
    assert allocation(api)["cards"] == {"n1-0": 4}


async def test_a_pod_that_asks_for_nothing_of_ours_is_refused(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    api.put(PODS, pod_json("plain", units=None))
    assert "asks for no gpushare.io/memory" in await binder.bind(reference("plain"), "elsewhere")
    assert api.requests("POST", "/api/v1/namespaces/default/pods/plain/binding") == []
    assert used(ledger) == 0


@pytest.mark.parametrize(
    ("pod", "node", "error"),
    [
        pytest.param(reference("nobody"), "n1", "cannot read the pod", id="no such pod"),
        pytest.param(reference(uid="former"), "n1", "another one has its name now", id="recreated pod"),
        pytest.param(reference(), "n9", "share no GPU cards", id="not a node of ours"),
        pytest.param(PodReference("default", "a", ""), "n1", "needs PodName", id="no UID"),
    ],
)
async def test_a_bind_that_cannot_be_is_refused(
    binder: Binder, ledger: Ledger, pod: PodReference, node: str, error: str
) -> None:
    assert error in await binder.bind(pod, node)
    assert used(ledger) == 0


async def test_without_room_nothing_is_sent(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    ledger.set_pod(pod_update("x", c0=13, c1=14))
    answer = await binder.bind(reference(), "n1")
    assert answer == "insufficient GPU memory in one card: asked 4, largest free 3"
    assert api.requests("POST", BINDING) == []


async def test_many_binds_at_once_never_over_commit(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    for index in range(12):
        api.put(PODS, pod_json(f"p{index}", units=5))
    answers = await asyncio.gather(*(binder.bind(reference(f"p{index}"), "n1") for index in range(12)))
    assert answers.count("") == 6, "three of 5 units on each of two cards of 16"
    assert used(ledger) == 30
    cards = [allocation(api, f"p{index}")["cards"] for index, answer in enumerate(answers) if not answer]
    assert sorted(card for pair in cards for card in pair) == ["n1-0"] * 3 + ["n1-1"] * 3


async def test_two_binds_of_one_pod_are_one(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    answers = await asyncio.gather(
        binder.bind(reference(), "n1"), binder.bind(reference(), "n1"), binder.bind(reference(), "n2")
    )
    assert list(answers[:2]) == ["", ""]
    assert "bound to node n1 already" in answers[2]
    assert len(api.requests("POST", BINDING)) == 1
    assert (used(ledger), used(ledger, "n2")) == (4, 0)


async def test_a_bind_tried_again_after_success_succeeds(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    assert await binder.bind(reference(), "n1") == ""
    assert await binder.bind(reference(), "n1") == ""
    assert "already holds its share of cards on node n1" in await binder.bind(reference(), "n2")
    assert (len(api.requests("POST", BINDING)), used(ledger), used(ledger, "n2")) == (1, 4, 0)


@pytest.mark.parametrize("code", [400, 403, 404, 422])
async def test_a_final_refusal_releases(api: FakeApi, binder: Binder, ledger: Ledger, code: int) -> None:
    api.fail("POST", BINDING, status(code, "by decree"))
    assert "by decree" in await binder.bind(reference(), "n1")
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
    assert await binder.bind(reference(), "n1") == ""
    assert (used(ledger), allocation(api)["cards"]) == (4, {"n1-0": 4})


@pytest.mark.parametrize("answer", LOST[:3])
async def test_an_unclear_failure_is_sent_again_while_the_caller_waits(
    api: FakeApi, binder: Binder, ledger: Ledger, answer: Answer
) -> None:
    api.fail("POST", BINDING, answer)
    assert await binder.bind(reference(), "n1") == ""
    assert (len(api.requests("POST", BINDING)), used(ledger)) == (2, 4)


@pytest.mark.parametrize("answer", LOST[3:])
async def test_refused_for_now_and_unbound_releases(
    api: FakeApi, binder: Binder, ledger: Ledger, answer: Answer
) -> None:
    api.fail("POST", BINDING, answer)
    assert "not bound" in await binder.bind(reference(), "n1")
    assert used(ledger) == 0


async def test_the_server_is_left_alone_as_it_asks_while_kube_scheduler_waits(
    api: FakeApi, hurried_binder: Binder, clock: FakeClock
) -> None:
    sent = clock.now
    api.fail("POST", BINDING, status(503, "starting", **{"Retry-After": "30"}))
    assert await hurried_binder.bind(reference(), "n1") == ""
    assert sent + 1.0 <= clock.now <= sent + 1.5, "half of the time that is left, and one more attempt"


async def test_units_stay_reserved_as_long_as_a_binding_may_still_land(
    api: FakeApi, hurried_binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    """The server takes the Binding, breaks off, and carries it out only seconds later."""
    late: list[Json] = []
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
    api.fail("GET", POD, *[passing, *[land] * 40])
    assert await hurried_binder.bind(reference(), "n1") == ""
    assert clock.now > sent + 8
    assert (used(ledger), len(api.requests("POST", BINDING))) == (4, 1)


async def test_units_are_released_when_a_lost_binding_cannot_land_any_more(
    api: FakeApi, hurried_binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    async def swallow(request: web.Request) -> web.StreamResponse:
        clock.now += 3.0
        return await cut(request)

    begun = clock.now
    api.fail("POST", BINDING, swallow)
    assert "the pod is not bound" in await hurried_binder.bind(reference(), "n1")
    assert clock.now >= begun + 12
    assert used(ledger) == 0


async def test_bound_by_somebody_else_releases(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    api.fail("GET", POD, passing)
    bound = pod_json("a", units=4, node="n2")
    api.put(PODS, bound)
    assert "bound by somebody else" in await binder.bind(reference(), "n1")
    assert used(ledger) == 0


async def test_an_answer_that_is_no_pod_tells_nothing(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    """As from a proxy between."""
    api.fail("POST", BINDING, after_binding(api, cut), cut)
    api.fail("GET", POD, passing, json_answer({}))
    assert await binder.bind(reference(), "n1") == ""
    assert used(ledger) == 4


async def test_the_pod_went_meanwhile(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    async def vanish(request: web.Request) -> web.StreamResponse:
        api.delete(PODS, "a", "default")
        return await cut(request)

    api.fail("POST", BINDING, vanish)
    assert "gone" in await binder.bind(reference(), "n1")
    assert ledger.holder("uid-a") is None


async def test_the_caller_gets_an_answer_though_the_api_server_gives_none(
    api: FakeApi, client: KubeClient, ledger: Ledger
) -> None:
    """The units stay reserved until the server tells; then the bind task books what is true."""
    binder = Binder(client, ledger, permitted, BindTiming(answer_within=30))
    free = asyncio.Event()

    async def slow(_: web.Request) -> None:
        await free.wait()

    api.fail("POST", BINDING, slow)
    first = asyncio.create_task(binder.bind(reference(), "n1"))
    await api.wait_for("the Binding", lambda: bool(api.requests("POST", BINDING)))
    leap(30)
    assert "not known yet whether the pod is bound to node n1" in await first
    second = asyncio.create_task(binder.bind(reference(), "n2"))
    await asyncio.sleep(0)
    leap(30)
    assert "not known yet" in await second, "joins the bind task under way"
    assert (used(ledger), ledger.reservations.is_unconfirmed("uid-a")) == (4, True)
    free.set()
    assert await binder.drain(30.0) == 0
    assert (used(ledger), ledger.reservations.is_unconfirmed("uid-a")) == (4, False)
    assert api.pod("a")["spec"]["nodeName"] == "n1"


async def test_while_the_pod_cannot_be_read_it_tries_again(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    api.fail("GET", POD, passing, *[status(503, "away")] * 20)
    api.fail("POST", BINDING, after_binding(api, cut), *[cut] * 19)
    assert await binder.bind(reference(), "n1") == ""
    assert used(ledger) == 4


async def test_a_server_that_is_not_there_releases_at_once(
    api: FakeApi,
    ledger: Ledger,
    clock: FakeClock,
    unused_tcp_port: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def as_if_read(*_: object) -> ExpectedRequest:
        return ExpectedRequest(pod_request(4), version=PodVersion("1"))

    monkeypatch.setattr(Binder, "_read_request", as_if_read)
    there = api.credentials()
    nowhere = Credentials(f"http://127.0.0.1:{unused_tcp_port}", there.tls, there.token)
    async with KubeClient(nowhere) as client:
        timing = BindTiming(clock=clock, sleep=clock.sleep)
        binder = Binder(client, ledger, permitted, timing)
        assert "was not bound" in await binder.bind(reference(), "n1")
    assert used(ledger) == 0


async def test_a_watch_that_shows_the_pod_first_is_believed(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    async def show(request: web.Request) -> web.StreamResponse | None:
        api.bind(("default", "a"), await request.json())
        ledger.set_pod(pod_update("uid-a", c0=4))
        ledger.drop_pod("uid-a")
        return web.json_response({}, status=201)

    api.fail("POST", BINDING, show)
    assert await binder.bind(reference(), "n1") == ""
    assert used(ledger) == 0, "the pod was deleted before its bind was answered"


async def test_drain_counts_what_does_not_end(api: FakeApi, binder: Binder) -> None:
    assert await binder.drain(0.0) == 0
    free = asyncio.Event()

    async def slow(_: web.Request) -> None:
        await free.wait()

    api.fail("POST", BINDING, slow)
    waiting = asyncio.create_task(binder.bind(reference(), "n1"))
    await api.wait_for("the Binding to be sent", lambda: bool(api.requests("POST", BINDING)))
    assert await binder.drain(0.01) == 1
    free.set()
    assert await waiting == ""


async def test_no_bind_of_a_burst_waits_for_another_at_a_slow_server(api: FakeApi, ledger: Ledger) -> None:
    """The server answers none before it has all: one that waits for a connection would hold up every one."""
    everybody = asyncio.Barrier(120)

    async def slow(_: web.Request) -> None:
        await everybody.wait()

    ledger.set_share_node(share_node("n1", *[16] * 30))
    for index in range(120):
        api.put(PODS, pod_json(f"p{index}", units=4))
        api.fail("POST", f"/api/v1/namespaces/default/pods/p{index}/binding", slow)
    async with kube_client(api.credentials()) as client:
        binder = Binder(client, ledger, permitted, BindTiming(answer_within=60))
        answers = await asyncio.gather(*(binder.bind(reference(f"p{index}"), "n1") for index in range(120)))
    assert set(answers) == {""}


async def test_a_bind_that_gets_no_turn_reserves_and_sends_nothing(
    api: FakeApi, client: KubeClient, ledger: Ledger
) -> None:
    free = asyncio.Event()

    async def slow(_: web.Request) -> None:
        await free.wait()

    api.put(PODS, pod_json("b", units=4))
    api.fail("POST", BINDING, slow)
    binder = Binder(client, ledger, permitted, BindTiming(answer_within=30), parallel=1)
    first = asyncio.create_task(binder.bind(reference("a"), "n1"))
    await api.wait_for("the Binding", lambda: bool(api.requests("POST", BINDING)))
    second = asyncio.create_task(binder.bind(reference("b"), "n1"))
    for _ in range(3):
        await asyncio.sleep(0)  # it waits for its turn
    leap(20)
    assert await second == "the API server is slow: 1 binds wait for it already"
    leap(10)
    assert "not known yet" in await first
    free.set()
    assert await binder.drain(30.0) == 0
    assert (api.pod("a")["spec"].get("nodeName"), api.pod("b")["spec"].get("nodeName")) == ("n1", None)
    assert used(ledger) == 4
    assert await binder.bind(reference("b"), "n1") == ""


async def test_an_internal_error_does_not_pin_a_living_pod_for_ever(
    api: FakeApi, client: KubeClient, binder: Binder, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_extender.bind.binder.share_binding", lambda *_, **__: 1 / 0)
    assert "internal error" in await binder.bind(reference(), "n1")
    assert used(ledger) == 4
    stale = StaleReservations(client, ledger, binder.timing)
    releasing = asyncio.create_task(stale.release())
    await api.wait_for("the pod forgotten", lambda: ledger.holder("uid-a") is None)
    releasing.cancel()
    monkeypatch.undo()
    assert "until just now" in await binder.bind(reference(), "n2")
    ledger.free_unreleased(now=binder.timing.clock() + UNRELEASED_SECONDS)
    assert await binder.bind(reference(), "n2") == ""
    assert used(ledger) == 0


async def test_after_an_internal_error_the_pod_keeps_its_card_until_the_outcome_is_known(
    api: FakeApi,
    binder: Binder,
    ledger: Ledger,
    clock: FakeClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The Binding that was sent may still take effect: what is sent next must say the same card."""
    late: list[Json] = []

    async def keep(request: web.Request) -> web.StreamResponse:
        late.append(await request.json())
        return await cut(request)

    api.fail("POST", BINDING, keep, status(403, "not now"))
    with monkeypatch.context() as broken:
        broken.setattr("gpushare_extender.bind.binding_write.binding_outcome", lambda *_: 1 / 0)
        assert "internal error" in await binder.bind(reference(), "n1")
    ledger.set_pod(pod_update("x", c0=12))  # another card would be better now
    begun = clock.now

    async def land(_: web.Request) -> None:
        if clock.now > begun + 5 and late:
            api.bind(("default", "a"), late.pop())

    api.fail("GET", POD, passing, *[land] * 40)
    assert await binder.bind(reference(), "n1") == ""
    assert (used(ledger), allocation(api)["cards"]) == (16, {"n1-0": 4})


async def test_its_reservation_of_another_unit_is_not_taken_up(
    api: FakeApi, binder: Binder, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.fail("POST", BINDING, cut)
    monkeypatch.setattr("gpushare_extender.bind.binding_write.binding_outcome", lambda *_: 1 / 0)
    assert "internal error" in await binder.bind(reference(), "n1")
    ledger.set_share_node(share_node("n1", unit="2Gi"))
    assert "already holds units on node n1" in await binder.bind(reference(), "n1")
    assert len(api.requests("POST", BINDING)) == 1


async def test_a_pod_is_not_read_for_longer_than_the_caller_waits(
    api: FakeApi, binder: Binder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: web.Request) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr("gpushare_extender.bind.binder.CALL_SECONDS", 0.1)
    api.fail("GET", POD, never)
    async with asyncio.timeout(20.0):
        assert "cannot read the pod" in await binder.bind(reference(), "n1")


async def test_what_waited_too_long_for_its_turn_is_not_sent(
    api: FakeApi, client: KubeClient, ledger: Ledger, clock: FakeClock
) -> None:
    """The caller's patience begins with its call, not with the bind's turn."""
    api.put(PODS, pod_json("b", units=4))
    free = asyncio.Event()

    async def slow(_: web.Request) -> None:
        await free.wait()

    async def slow_read(_: web.Request) -> None:
        clock.now += 2.5

    api.fail("POST", BINDING, slow)
    api.fail("GET", "/api/v1/namespaces/default/pods/b", slow_read)
    timing = BindTiming(clock=clock, sleep=clock.sleep, answer_within=4.0)
    binder = Binder(client, ledger, permitted, timing, parallel=1)
    first = asyncio.create_task(binder.bind(reference("a"), "n1"))
    await api.wait_for("the Binding", lambda: bool(api.requests("POST", BINDING)))
    second = asyncio.create_task(binder.bind(reference("b"), "n1"))
    await asyncio.sleep(0.01)
    clock.now += 1.9
    free.set()
    assert await first == ""
    assert "kube-scheduler has given up" in await second
    assert api.requests("POST", "/api/v1/namespaces/default/pods/b/binding") == []
    assert used(ledger) == 4


@pytest.mark.parametrize("annotations", [None, {}], ids=["deleted", "its annotation removed"])
async def test_what_was_bound_for_a_while_counts_until_the_plugin_would_have_told(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock, annotations: dict[str, str] | None
) -> None:
    async def lost(request: web.Request) -> web.StreamResponse:
        assert api.bind(("default", "a"), await request.json()) is None
        bound = api.pod("a")
        api.delete(PODS, "a", "default")
        if annotations is not None:
            api.put(PODS, {**bound, "metadata": {**bound["metadata"], "annotations": annotations}})
        return await cut(request)

    api.fail("POST", BINDING, lost)
    assert "the pod is" in await binder.bind(reference(), "n1")
    assert (used(ledger), ledger.holder("uid-a")) == (4, None)
    ledger.free_unreleased(now=clock.now + UNRELEASED_SECONDS)
    assert used(ledger) == 0


async def test_nor_what_waited_too_long_for_the_lease(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    asked = 0

    async def renewing() -> int:
        nonlocal asked
        asked += 1
        clock.now += binder.timing.answer_within if asked == 2 else 0.0
        return 1

    binder.permit = renewing
    assert "kube-scheduler has given up" in await binder.bind(reference(), "n1")
    assert (api.requests("POST", BINDING), used(ledger)) == ([], 0)


async def test_what_took_too_long_to_begin_is_not_sent(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    """kube-scheduler has given up, and may have given the node's CPU to another pod."""

    async def slow(_: web.Request) -> None:
        clock.now += binder.timing.answer_within

    api.fail("GET", POD, slow)
    assert "kube-scheduler has given up" in await binder.bind(reference(), "n1")
    assert (api.requests("POST", BINDING), used(ledger)) == ([], 0)


@pytest.mark.parametrize(
    ("node", "answer"), [("n1", ""), ("n2", "already holds its share of cards on node n2")]
)
async def test_what_another_extender_did_is_seen_once_the_lease_is_ours(
    api: FakeApi, binder: Binder, ledger: Ledger, node: str, answer: str
) -> None:
    async def take_over() -> int:
        ledger.set_pod(pod_update("uid-a", node=node, c0=4))
        return 1

    binder.permit = take_over
    assert answer in await binder.bind(reference(), "n1")
    assert api.requests("POST", BINDING) == []


async def test_while_the_lease_is_taken_the_pods_units_are_reserved_already(
    binder: Binder, ledger: Ledger
) -> None:
    """Right after an installation that takes a while: the next pod of a file did not see the first one's."""
    seen: list[int] = []

    async def take_over() -> int:
        seen.append(used(ledger))
        return 1

    binder.permit = take_over
    binder.expected.put("uid-a", pod_request(4))
    assert await binder.bind(reference(), "n1") == ""
    assert seen[0] == 4


async def test_what_was_reserved_before_the_lease_is_chosen_anew(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    async def take_over() -> int:
        ledger.set_pod(pod_update("uid-b", c0=16))
        ledger.set_pod(pod_update("uid-c", c1=16))
        return 1

    binder.permit = take_over
    binder.expected.put("uid-a", pod_request(4))
    assert "insufficient GPU memory" in await binder.bind(reference(), "n1")
    assert api.requests("POST", BINDING) == []


class Gate:
    """A read of the pod that waits until it is opened; then the server answers."""

    def __init__(self, then: Answer = passing) -> None:
        self.asked = asyncio.Event()
        self.open = asyncio.Event()
        self._then = then

    async def __call__(self, request: web.Request) -> web.StreamResponse | None:
        self.asked.set()
        await self.open.wait()
        return await self._then(request)


class TestWhatKubeSchedulerHasShown:
    """It has proven who it is: the API server is asked for nothing but the Binding."""

    @pytest.fixture(autouse=True)
    def shown(self, api: FakeApi, binder: Binder, ledger: Ledger) -> None:
        version = PodVersion(api.pod("a")["metadata"]["resourceVersion"])
        binder.expected.put("uid-a", pod_request(4), authenticated=ledger.resources, version=version)

    def reads(self, api: FakeApi) -> int:
        return len(api.requests("GET", POD))

    async def test_is_bound_without_asking(self, api: FakeApi, binder: Binder, ledger: Ledger) -> None:
        assert await binder.bind(reference(), "n1") == ""
        assert (self.reads(api), used(ledger)) == (0, 4)
        assert allocation(api)["containers"] == {"main": {"n1-0": 4}}

    async def test_is_asked_for_where_others_resources_are_ours_by_now(
        self, api: FakeApi, binder: Binder, ledger: Ledger
    ) -> None:
        served = {"nvidia.com/gpu": ResourceClass.CARD}
        ledger.set_share_node(replace(share_node("n3"), resources=served))
        assert await binder.bind(reference(), "n1") == ""
        assert self.reads(api) == 1

    async def test_is_good_for_one_bind(self, api: FakeApi, binder: Binder) -> None:
        api.fail("POST", BINDING, status(403))
        assert await binder.bind(reference(), "n1")
        assert await binder.bind(reference(), "n1") == ""
        assert self.reads(api) == 1

    async def test_another_pod_of_the_name_is_not_bound(
        self, api: FakeApi, binder: Binder, ledger: Ledger
    ) -> None:
        api.delete(PODS, "a", "default")
        api.put(PODS, pod_json("a", uid="uid-other", units=8))
        assert await binder.bind(reference(), "n1")
        assert "nodeName" not in api.pod("a")["spec"]
        assert used(ledger) == 0

    async def test_does_not_fit_any_more(self, api: FakeApi, binder: Binder, ledger: Ledger) -> None:
        ledger.set_pod(pod_update("uid-x", c0=16))
        ledger.set_pod(pod_update("uid-y", c1=16))
        assert "asked 4" in await binder.bind(reference(), "n1")
        assert api.requests("POST", BINDING) == []


class TestWhatAPodIsExpectedToAskFor:
    """Its filter has shown it: pods that are filtered while the API server is asked do not find it free."""

    @pytest.fixture
    def gate(self, api: FakeApi) -> Gate:
        made = Gate()
        api.fail("GET", POD, made)
        return made

    async def bind(self, binder: Binder, gate: Gate, *, expected: int) -> "asyncio.Task[str]":
        binder.expected.put("uid-a", pod_request(expected))
        binding = asyncio.create_task(binder.bind(reference(), "n1"))
        async with asyncio.timeout(30):
            await gate.asked.wait()
        return binding

    async def test_is_kept_while_the_api_server_is_asked(
        self, api: FakeApi, binder: Binder, ledger: Ledger, gate: Gate
    ) -> None:
        binding = await self.bind(binder, gate, expected=4)
        assert used(ledger) == 4
        gate.open.set()
        assert await binding == ""
        assert allocation(api)["cards"] == {"n1-0": 4}
        assert (used(ledger), ledger.reservations.is_unconfirmed("uid-a")) == (4, False)

    @pytest.mark.parametrize("expected", [1, 16])
    async def test_does_not_count_when_the_pod_asks_for_something_else(
        self, api: FakeApi, binder: Binder, ledger: Ledger, gate: Gate, expected: int
    ) -> None:
        binding = await self.bind(binder, gate, expected=expected)
        assert used(ledger) == expected
        gate.open.set()
        assert await binding == ""
        assert allocation(api)["cards"] == {"n1-0": 4}
        assert used(ledger) == 4

    async def test_is_free_again_when_the_pod_is_gone(
        self, api: FakeApi, binder: Binder, ledger: Ledger, gate: Gate
    ) -> None:
        binding = await self.bind(binder, gate, expected=4)
        api.delete(PODS, "a", "default")
        gate.open.set()
        assert "cannot read the pod" in await binding
        assert (used(ledger), ledger.holder("uid-a")) == (0, None)

    async def test_is_chosen_anew_when_a_watch_has_taken_it_away(
        self, api: FakeApi, binder: Binder, ledger: Ledger, gate: Gate
    ) -> None:
        binding = await self.bind(binder, gate, expected=4)
        ledger.drop_pod("uid-a")
        ledger.set_pod(pod_update("other", c0=14))
        gate.open.set()
        assert await binding == ""
        assert allocation(api)["cards"] == {"n1-1": 4}
        assert used(ledger) == 18

    async def test_is_not_chosen_anew_when_a_watch_shows_what_the_pod_has(
        self, api: FakeApi, binder: Binder, ledger: Ledger, gate: Gate
    ) -> None:
        binding = await self.bind(binder, gate, expected=4)
        ledger.set_pod(pod_update("uid-a", c1=4))
        gate.open.set()
        assert await binding == ""
        assert used(ledger) == 4
        assert "nodeName" not in api.pod("a")["spec"], "somebody else has bound it, by what the watch shows"

    @pytest.mark.parametrize("what", ["dropped", "paused", "closed"])
    async def test_is_not_bound_to_a_node_that_takes_no_pods_any_more(
        self, api: FakeApi, binder: Binder, ledger: Ledger, gate: Gate, what: str
    ) -> None:
        binding = await self.bind(binder, gate, expected=4)
        if what == "dropped":
            ledger.drop_share_node("n1")
        elif what == "paused":
            ledger.pause("n1", "paused")
        else:
            ledger.set_share_node(share_node("n1", closed_reason="closed"))
        gate.open.set()
        assert await binding
        assert "nodeName" not in api.pod("a")["spec"]
        assert ledger.holder("uid-a") is None

    async def test_is_chosen_anew_in_another_unit(
        self, api: FakeApi, binder: Binder, ledger: Ledger, gate: Gate
    ) -> None:
        binding = await self.bind(binder, gate, expected=4)
        ledger.set_share_node(share_node("n1", 32, 32, unit="512Mi"))
        gate.open.set()
        assert await binding == ""
        assert (allocation(api)["unit"], used(ledger)) == ("512Mi", 4)

    async def test_that_does_not_fit_is_not_asked_for(
        self, api: FakeApi, binder: Binder, ledger: Ledger
    ) -> None:
        ledger.set_pod(pod_update("b", c0=14, c1=14))
        binder.expected.put("uid-a", pod_request(4))
        assert "insufficient GPU memory" in await binder.bind(reference(), "n1")
        assert not [seen for seen in api.seen if seen.path == POD]

    async def test_ends_nothing_that_is_held_for_others(
        self, binder: Binder, ledger: Ledger, gate: Gate
    ) -> None:
        ledger.hold(reference("high"), node="n1", request=pod_request(4), priority=9, until=99.0)
        binding = await self.bind(binder, gate, expected=4)
        assert (used(ledger), ledger.holder("uid-a")) == (4, None)
        gate.open.set()
        assert await binding == ""
        assert used(ledger) == 8
        assert ledger.holds.get("uid-high")

    @pytest.mark.parametrize("expected", [0, 4])
    async def test_frees_nothing_that_the_kubelet_may_still_have(
        self, api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock, expected: int
    ) -> None:
        """kube-scheduler tries a bind again that it has not seen the end of, and the pod is gone by then."""
        ledger.set_pod(pod_update("uid-a", c0=4))
        ledger.pod_deleted("uid-a", now=clock.now)
        api.delete(PODS, "a", "default")
        binder.expected.put("uid-a", pod_request(expected))
        assert await binder.bind(reference(), "n1")
        assert used(ledger) == 4
        ledger.free_unreleased(now=clock.now + UNRELEASED_SECONDS)
        assert used(ledger) == 0

    async def test_is_free_again_when_the_answer_cannot_be_understood(
        self, binder: Binder, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async def broken(_binder: Binder, _pod: PodReference) -> ExpectedRequest:
            raise RuntimeError("a defect")

        monkeypatch.setattr(Binder, "_read_request", broken)
        binder.expected.put("uid-a", pod_request(4))
        assert "internal error" in await binder.bind(reference(), "n1")
        assert (used(ledger), ledger.holder("uid-a")) == (0, None)


async def test_an_old_cache_frees_nothing_that_the_kubelet_may_still_have(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    ledger.set_pod(pod_update("uid-a", c0=4))
    ledger.pod_deleted("uid-a", now=clock.now)
    api.fail("POST", BINDING, status(404))
    assert "until just now" in await binder.bind(reference(), "n1")
    assert used(ledger) == 4
