"""Two extenders on one API server: never do both bind, and who takes over knows what the other did."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from aiohttp import web
from tests.fakes.api_server import (
    LEASES,
    PODS,
    SHARE_NODES,
    FakeApi,
    cut,
    fake_api,
    json_answer,
    status,
)
from tests.fakes.extender_clock import HandClock
from tests.samples.extender import pod_json, reference, share_node_json

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.text.json_object import Json
from gpushare_extender.arguments import Options
from gpushare_extender.bind.deadlines import (
    CALL_SECONDS,
    IDLE_SECONDS,
    LEASE_SECONDS,
    RENEW_SECONDS,
    UNCERTAIN_SECONDS,
    BindTiming,
)
from gpushare_extender.bind.lease import BindLease
from gpushare_extender.extender import Extender
from gpushare_extender.transport.endpoints import Address

LEASE = f"{LEASES}/gpushare-extender"


@dataclass
class Running:
    """One extender that follows the cluster; its Lease goes by a clock of its own."""

    extender: Extender
    clock: HandClock
    tasks: list["asyncio.Task[None]"] = field(default_factory=list)

    @property
    def lease(self) -> BindLease:
        return self.extender.lease

    async def start(self) -> None:
        self.tasks = [asyncio.create_task(task) for task in self.extender.tasks()]
        for watch in self.extender.watches:
            await asyncio.wait_for(watch.health.until_applied(0), 30)

    async def bind(self, name: str) -> str:
        return await self.extender.api.binder.bind(reference(name), "n1")

    async def crash(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    """One card of 16, and three pods of which it takes one."""
    async with fake_api() as fake:
        fake.put(SHARE_NODES, share_node_json("n1", cards=1))
        for name in ("a", "b", "c"):
            fake.put(PODS, pod_json(name, units=16))
        yield fake


async def start(client: KubeClient, identity: str) -> Running:
    options = Options(listen=Address("127.0.0.1", 0), identity=identity)
    running = Running(Extender.create(client, options), HandClock())
    running.lease.timing = BindTiming(clock=running.clock, sleep=running.clock.sleep)
    await running.start()
    return running


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials()) as opened:
        yield opened


@pytest.fixture
async def one(client: KubeClient) -> AsyncIterator[Running]:
    running = await start(client, "one")
    yield running
    await running.crash()


@pytest.fixture
async def two(client: KubeClient) -> AsyncIterator[Running]:
    running = await start(client, "two")
    yield running
    await running.crash()


def bound(api: FakeApi) -> list[str]:
    return [name for (_, name), pod in api.objects[PODS].items() if pod["spec"].get("nodeName")]


def holder(api: FakeApi) -> str | None:
    lease: Json = api.objects[LEASES]["", "gpushare-extender"]
    return (lease.get("spec") or {}).get("holderIdentity")


async def test_of_two_that_are_asked_at_once_one_binds(api: FakeApi, one: Running, two: Running) -> None:
    answers = await asyncio.gather(one.bind("a"), two.bind("b"))
    assert sorted(answers)[0] == ""
    assert len(bound(api)) == 1


async def test_the_other_one_says_who_binds(api: FakeApi, one: Running, two: Running) -> None:
    assert await one.bind("a") == ""
    assert "the extender one answers binds" in await two.bind("b")
    assert bound(api) == ["a"]


async def test_once_idle_it_gives_the_lease_back_and_the_other_knows_what_it_did(
    api: FakeApi, one: Running, two: Running
) -> None:
    api.fail("GET", PODS, *[status(503)] * 50, watch=True)
    two.extender.watches[0]._again.set()  # its watch of pods does not get through any more
    assert await one.bind("a") == ""
    one.clock.now += IDLE_SECONDS + RENEW_SECONDS
    await api.wait_for("the Lease given back", lambda: holder(api) is None)
    assert await two.bind("b") == "insufficient GPU memory in one card: asked 16, largest free 0"
    assert holder(api) == "two"
    assert bound(api) == ["a"]


async def test_after_a_crash_the_lease_has_to_expire_before_the_eyes_of_the_next(
    api: FakeApi, one: Running, two: Running
) -> None:
    assert await one.bind("a") == ""
    await one.crash()
    assert "the extender one answers binds" in await two.bind("b")
    two.clock.now += LEASE_SECONDS - 1
    assert "answers binds" in await two.bind("b")
    two.clock.now += 1
    assert "largest free 0" in await two.bind("b")
    api.delete(PODS, "a", "default")
    ledger = two.extender.api.ledger
    await api.wait_for("the pod gone", lambda: ledger.holder("uid-a") is None)
    ledger.free_unreleased(now=float("inf"))
    assert await two.bind("b") == ""


async def test_what_was_chosen_before_another_had_the_lease_is_not_sent_after(
    api: FakeApi, one: Running, two: Running
) -> None:
    """As when its machine was suspended in between: by its own clock the caller still waits."""

    async def suspended(request: web.Request) -> web.StreamResponse:
        assert "the extender one answers binds" in await two.bind("b")
        two.clock.now += LEASE_SECONDS
        assert await two.bind("b") == ""
        await two.extender.finish()
        one.clock.now += 3 * LEASE_SECONDS
        return await cut(request)

    api.fail("POST", "/api/v1/namespaces/default/pods/a/binding", suspended)
    attempt = asyncio.create_task(one.bind("a"))
    await api.wait_for("the Lease given back", lambda: bound(api) == ["b"] and holder(api) != "two")
    await attempt
    assert bound(api) == ["b"]


async def test_at_its_end_it_gives_the_lease_back(api: FakeApi, one: Running, two: Running) -> None:
    assert await one.bind("a") == ""
    await one.extender.finish()
    assert holder(api) is None
    assert "largest free 0" in await two.bind("b")


async def test_with_a_bind_that_does_not_end_it_does_not(
    api: FakeApi, one: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpushare_extender.extender.DRAIN_SECONDS", 0.05)

    free = asyncio.Event()

    async def slow(_: object) -> None:
        await free.wait()

    api.fail("POST", "/api/v1/namespaces/default/pods/a/binding", slow)
    binding = asyncio.create_task(one.bind("a"))
    await api.wait_for("the Binding", lambda: bool(api.requests("POST", f"{PATH}/a/binding")))
    await one.extender.finish()
    assert holder(api) == "one"
    free.set()
    assert await binding == ""


PATH = "/api/v1/namespaces/default/pods"


async def test_many_binds_cost_one_write_of_the_lease_and_one_list(api: FakeApi, one: Running) -> None:
    api.put(SHARE_NODES, share_node_json("n1", cards=40))
    for number in range(40):
        api.put(PODS, pod_json(f"p{number}", units=16))
    ledger = one.extender.api.ledger
    await api.wait_for("the cards", lambda: len(list((ledger.node("n1") or NodeLedger()).cards())) == 40)
    lists = len(api.requests("GET", PODS))
    answers = await asyncio.gather(*(one.bind(f"p{number}") for number in range(40)))
    assert set(answers) == {""}
    writes = [request for request in api.seen if request.path == LEASE and request.method != "GET"]
    assert len(writes) == 1
    assert sum(not request.is_watch for request in api.requests("GET", PODS)[lists:]) == 1


async def test_while_it_is_used_it_is_renewed(api: FakeApi, one: Running) -> None:
    assert await one.bind("a") == ""
    before = api.objects[LEASES]["", "gpushare-extender"]["metadata"]["resourceVersion"]
    one.clock.now += RENEW_SECONDS
    await api.wait_for("a renewal", lambda: len(api.requests("PUT", LEASE)) == 2)
    after = api.objects[LEASES]["", "gpushare-extender"]
    assert (after["metadata"]["resourceVersion"] != before, holder(api)) == (True, "one")
    assert after["spec"]["leaseTransitions"] == 1, "taken once"


async def test_its_own_lease_given_back_and_taken_again_needs_no_list(api: FakeApi, one: Running) -> None:
    assert await one.bind("a") == ""
    one.clock.now += IDLE_SECONDS + RENEW_SECONDS
    await api.wait_for("the Lease given back", lambda: holder(api) is None)
    lists = sum(not request.is_watch for request in api.requests("GET", PODS))
    assert "largest free 0" in await one.bind("b")
    assert holder(api) == "one"
    assert sum(not request.is_watch for request in api.requests("GET", PODS)) == lists


@pytest.mark.parametrize(
    ("method", "path"),
    [
        pytest.param("GET", LEASE, id="read"),
        pytest.param("PUT", LEASE, id="write"),
    ],
)
async def test_without_the_lease_nothing_is_sent(api: FakeApi, one: Running, method: str, path: str) -> None:
    api.fail(method, path, status(403, "no such right"), status(503, "away"))
    assert "no such right" in await one.bind("a")
    assert "away" in await one.bind("a")
    assert bound(api) == []
    assert await one.bind("a") == ""


async def test_an_answer_that_is_no_lease_ends_nothing(api: FakeApi, one: Running) -> None:
    """As from a proxy between: the extender would have to start again."""
    api.fail("GET", LEASE, json_answer({}), json_answer({}))
    assert "cannot tell which extender answers binds" in await one.bind("a")
    one.clock.now += RENEW_SECONDS
    await api.wait_for("another look", lambda: len(api.requests("GET", LEASE)) == 2)
    assert await one.bind("a") == ""
    assert not any(task.done() for task in one.tasks)


async def test_a_lease_that_was_written_though_the_answer_was_lost_is_its_own(
    api: FakeApi, one: Running
) -> None:
    async def write(request: object) -> object:
        api.put(LEASES, await request.json())  # type: ignore[attr-defined]
        return await cut(request)  # type: ignore[arg-type]

    api.fail("PUT", LEASE, write)  # type: ignore[arg-type]
    assert "cannot tell which extender answers binds" in await one.bind("a"), "it was sent once"
    assert await one.bind("a") == ""


async def test_a_lease_that_cannot_be_renewed_is_not_relied_on(api: FakeApi, one: Running) -> None:
    assert await one.bind("a") == ""
    api.fail("GET", LEASE, *[status(503, "away")] * 20)
    one.clock.now += LEASE_SECONDS - one.lease.timing.uncertain_for + 0.5
    assert "cannot read the Lease" in await one.bind("b")


async def test_with_a_binding_that_a_defect_lost_sight_of_it_is_not_given_back(
    api: FakeApi, one: Running, two: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The API server may carry it out up to 12 s later: nobody else may promise the card before."""
    api.fail("POST", f"{PATH}/a/binding", cut)
    monkeypatch.setattr("gpushare_extender.bind.binding_write.binding_outcome", lambda *_: 1 / 0)
    assert "internal error" in await one.bind("a")
    await one.extender.finish()
    assert holder(api) == "one"
    assert "the extender one answers binds" in await two.bind("b")


async def test_a_deleted_lease_is_made_anew_by_its_holder(api: FakeApi, one: Running) -> None:
    assert await one.bind("a") == ""
    api.delete(LEASES, "gpushare-extender")
    one.clock.now += RENEW_SECONDS
    await api.wait_for("the Lease", lambda: ("", "gpushare-extender") in api.objects[LEASES])
    assert holder(api) == "one"
    assert api.requests("POST", LEASES) == [], "no right by name allows that"


async def test_whoever_finds_the_lease_deleted_waits_for_its_holder(
    api: FakeApi, one: Running, two: Running
) -> None:
    assert await one.bind("a") == ""
    api.delete(LEASES, "gpushare-extender")
    assert "the Lease gpushare-extender was deleted: this extender may take it in 20 s" in await two.bind("b")
    two.clock.now += LEASE_SECONDS
    assert "largest free 0" in await two.bind("b")
    assert holder(api) == "two"


def test_the_times_fit_each_other() -> None:
    assert UNCERTAIN_SECONDS > 2 * CALL_SECONDS, "a call may be sent at the end of its own time"
    assert LEASE_SECONDS - RENEW_SECONDS - CALL_SECONDS >= UNCERTAIN_SECONDS, "one renewal may fail"
    assert IDLE_SECONDS >= UNCERTAIN_SECONDS


async def hold_after_reading(api: FakeApi, lease: BindLease, gates: list[asyncio.Event]) -> None:
    """Take the Lease, whose first reading of the books is let through."""
    holding = asyncio.create_task(lease.hold())
    await api.wait_for("a reading", lambda: len(gates) == 1)
    gates[0].set()
    await asyncio.wait_for(holding, 30)


class TestReading:
    """What holders before did is read after the Lease was taken, each time."""

    @pytest.fixture
    def clock(self) -> HandClock:
        return HandClock()

    @pytest.fixture
    def gates(self) -> list[asyncio.Event]:
        """Of the readings that have begun: each ends when its gate opens."""
        return []

    @pytest.fixture
    def lease(self, client: KubeClient, clock: HandClock, gates: list[asyncio.Event]) -> BindLease:
        async def read() -> None:
            gates.append(asyncio.Event())
            await gates[-1].wait()

        timing = BindTiming(clock=clock, sleep=clock.sleep)
        return BindLease(client, "gpushare-system", "one", read, timing=timing)

    async def test_one_that_began_before_the_lease_was_lost_is_not_enough(
        self, api: FakeApi, lease: BindLease, clock: HandClock, gates: list[asyncio.Event]
    ) -> None:
        first = asyncio.create_task(lease.hold())
        await api.wait_for("a reading", lambda: len(gates) == 1)
        clock.now += LEASE_SECONDS
        api.put(LEASES, {"metadata": {"name": "gpushare-extender"}})  # somebody else had it meanwhile
        second = asyncio.create_task(lease.hold())
        await api.wait_for("the Lease taken again", lambda: holder(api) == "one")
        gates[0].set()
        await api.wait_for("another reading", lambda: len(gates) == 2)
        assert (first.done(), second.done()) == (False, False)
        gates[1].set()
        await asyncio.wait_for(asyncio.gather(first, second), 30)

    async def test_one_is_enough_while_nobody_else_had_it(
        self, api: FakeApi, lease: BindLease, clock: HandClock, gates: list[asyncio.Event]
    ) -> None:
        await hold_after_reading(api, lease, gates)
        clock.now += LEASE_SECONDS
        await asyncio.wait_for(lease.hold(), 30)
        assert len(gates) == 1

    async def test_a_renewal_that_the_api_server_could_not_make_does_not_end_the_holding(
        self, api: FakeApi, lease: BindLease, clock: HandClock, gates: list[asyncio.Event]
    ) -> None:
        await hold_after_reading(api, lease, gates)
        clock.now += LEASE_SECONDS - UNCERTAIN_SECONDS + 1
        api.fail("PUT", LEASE, status(429, "slow down"))
        with pytest.raises(NotHeldError):
            await lease.hold()
        await asyncio.wait_for(lease.hold(), 30)
        assert len(gates) == 1


async def test_the_lease_goes_by_a_clock_that_runs_while_the_machine_is_suspended(
    client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Extender.create(client, Options(listen=Address("127.0.0.1", 0)))
    now = {time.CLOCK_BOOTTIME: 100.0, time.CLOCK_MONOTONIC: 100.0}
    monkeypatch.setattr(time, "clock_gettime", now.__getitem__)
    running.lease.take_over = _nothing_to_read
    await running.lease.hold()
    now[time.CLOCK_BOOTTIME] += 60.0  # suspended: the others saw the Lease expire
    assert not running.lease._lease.lasts(0.0)


async def _nothing_to_read() -> None:
    """In place of lists."""
