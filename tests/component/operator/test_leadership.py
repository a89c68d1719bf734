"""One operator at a time writes, whatever becomes of the other ones."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from tests.fakes.api_server import LEASES, FakeApi, cut, fake_api, status
from tests.fakes.extender_clock import HandClock

from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.text.json_object import Json
from gpushare_operator.main import identity, parser
from gpushare_operator.process.leadership import LeaderClient, Leadership, LeadershipLostError, LeaseTimes

LEASE = f"{LEASES}/gpushare-operator"
NODE = "/api/v1/nodes/gpu-1"
TIMES = LeaseTimes(30)


@dataclass
class Operator:
    """As much of one as the Lease concerns."""

    leadership: Leadership
    client: LeaderClient
    clock: HandClock = field(default_factory=HandClock)

    def __post_init__(self) -> None:
        self.leadership.clock = self.leadership.lease.clock = self.clock
        self.leadership.sleep = self.clock.sleep

    async def write(self) -> None:
        await self.client.merge(NODE, {})


@asynccontextmanager
async def operator(api: FakeApi, name: str) -> AsyncIterator[Operator]:
    leadership = Leadership.of(api.credentials(), "gpushare-system", identity=name, times=TIMES)
    client = LeaderClient(api.credentials(), leadership, timeout=60, field_manager="gpushare-operator")
    async with leadership.client, client:
        yield Operator(leadership, client)


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        fake.put(LEASES, {"metadata": {"name": "gpushare-operator"}})

        async def written(_: web.Request) -> web.StreamResponse:
            return web.json_response({})

        fake.fail("PATCH", NODE, *[written] * 20)
        yield fake


@pytest.fixture
async def one(api: FakeApi) -> AsyncIterator[Operator]:
    async with operator(api, "one") as made:
        await asyncio.wait_for(made.leadership.win(), 30)
        yield made


@pytest.fixture
async def two(api: FakeApi, one: Operator) -> AsyncIterator[Operator]:
    """Stands by: it has seen that the first one is at work."""
    assert one.leadership.is_at_work
    async with operator(api, "two") as made:
        task = asyncio.create_task(made.leadership.win())
        await api.wait_for("it has looked", lambda: "one is at work" in made.leadership.waits_for)
        yield made
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def writes(api: FakeApi) -> int:
    return len(api.requests("PATCH", NODE))


def holder(api: FakeApi) -> str | None:
    lease: Json = api.objects[LEASES]["", "gpushare-operator"]
    return (lease.get("spec") or {}).get("holderIdentity")


def annotate_lease(api: FakeApi) -> None:
    lease: Json = api.objects[LEASES]["", "gpushare-operator"]
    api.put(LEASES, {**lease, "metadata": {**lease["metadata"], "annotations": {"touched": "yes"}}})


async def test_only_the_one_at_work_writes(api: FakeApi, one: Operator, two: Operator) -> None:
    await one.write()
    with pytest.raises(NotSentError, match="another operator may be at work"):
        await two.write()
    assert (writes(api), holder(api)) == (1, "one")
    assert (one.leadership.is_at_work, two.leadership.is_at_work) == (True, False)


async def test_the_api_server_gives_a_write_up_in_time(api: FakeApi, one: Operator) -> None:
    await one.write()
    (seen,) = api.requests("PATCH", NODE)
    assert seen.query["timeout"] == "10s"


async def test_when_it_ends_the_other_goes_to_work(api: FakeApi, one: Operator, two: Operator) -> None:
    await one.leadership.give_up()
    two.clock.now += TIMES.poll
    await api.wait_for("the other one at work", lambda: two.leadership.is_at_work)
    await two.write()
    with pytest.raises(NotSentError):
        await one.write()
    assert (writes(api), holder(api)) == (1, "two")


async def test_one_that_was_paused_writes_no_more_when_it_goes_on(
    api: FakeApi, one: Operator, two: Operator
) -> None:
    """Its last renewal is longer ago than it knows: it looks at the clock before every write."""
    for clock in (one.clock, two.clock):
        clock.now += TIMES.lease
    await api.wait_for("the other one at work", lambda: two.leadership.is_at_work)
    with pytest.raises(NotSentError):
        await one.write()
    with pytest.raises(LeadershipLostError, match="the operator two is at work"):
        await one.leadership._renew()


async def test_a_lease_that_is_replaced_by_that_of_the_manifests_makes_no_second_operator(
    api: FakeApi, one: Operator, two: Operator
) -> None:
    """As ``helm upgrade --force`` and ``kubectl replace`` do."""
    api.put(LEASES, {"metadata": {"name": "gpushare-operator"}})
    two.clock.now += TIMES.poll
    await api.wait_for("another look", lambda: "nobody relies on it" in two.leadership.waits_for)
    await one.write()
    with pytest.raises(NotSentError):
        await two.write()


async def test_touched_by_somebody_else_it_is_still_ours(api: FakeApi, one: Operator) -> None:
    """As by ``kubectl apply``, ``annotate`` or ``label``: nobody else was at work meanwhile."""
    keeping = asyncio.create_task(one.leadership.keep())
    await asyncio.sleep(0)
    annotate_lease(api)
    seen = len(api.requests("PUT", LEASE))
    one.clock.now += TIMES.renew
    await api.wait_for("a renewal", lambda: len(api.requests("PUT", LEASE)) > seen)
    await one.write()
    assert not keeping.done()
    assert api.objects[LEASES]["", "gpushare-operator"]["metadata"]["annotations"] == {"touched": "yes"}
    keeping.cancel()


async def test_touched_between_reading_and_writing_it_is_read_again(api: FakeApi, one: Operator) -> None:
    one.clock.now += TIMES.renew
    api.fail("PUT", LEASE, status(409))
    await one.leadership._renew()
    assert one.leadership.lease.lasts(TIMES.lease)
    await one.write()


async def test_given_back_after_somebody_touched_it_the_next_one_waits_for_nobody(
    api: FakeApi, one: Operator, two: Operator
) -> None:
    annotate_lease(api)
    await one.leadership.give_up()
    assert holder(api) is None
    two.clock.now += TIMES.poll
    await api.wait_for("the other one at work", lambda: two.leadership.is_at_work)


async def test_a_write_that_could_outlast_the_lease_is_not_sent(one: Operator) -> None:
    one.clock.now += TIMES.lease - TIMES.fence
    await one.write()
    one.clock.now += 0.1
    with pytest.raises(NotSentError):
        await one.write()
    assert TIMES.fence >= 2 * TIMES.write, "once to be sent, once to be carried out"
    assert TIMES.lease - TIMES.fence >= 2 * TIMES.renew - TIMES.poll, "one renewal may fail"


async def test_a_renewal_that_fails_now_and_then_ends_nothing(api: FakeApi, one: Operator) -> None:
    keeping = asyncio.create_task(one.leadership.keep())
    await asyncio.sleep(0)
    api.fail("PUT", LEASE, status(503))
    before = len(api.requests("PUT", LEASE))
    one.clock.now += TIMES.renew
    await api.wait_for("a failed renewal", lambda: len(api.requests("PUT", LEASE)) == before + 1)
    await asyncio.sleep(0.01)
    one.clock.now += TIMES.renew
    await api.wait_for("a renewal", lambda: len(api.requests("PUT", LEASE)) == before + 2)
    await asyncio.sleep(0.01)
    await one.write()
    assert not keeping.done()
    keeping.cancel()


async def test_cut_off_it_ends_before_another_can_begin(api: FakeApi, one: Operator) -> None:
    api.fail("GET", LEASE, *[status(503)] * 50)
    keeping = asyncio.create_task(one.leadership.keep())
    begun = one.clock.now
    for _ in range(6):
        await asyncio.sleep(0.02)
        one.clock.now += TIMES.renew
    with pytest.raises(LeadershipLostError, match="503"):
        await asyncio.wait_for(keeping, 30)
    assert one.clock.now - begun <= TIMES.lease
    assert not one.leadership.may_write


async def test_back_at_work_after_somebody_else_it_ends_as_well(api: FakeApi, one: Operator) -> None:
    """What it knows may be of before the other one's writes."""
    keeping = asyncio.create_task(one.leadership.keep())
    await asyncio.sleep(0)
    api.put(LEASES, {"metadata": {"name": "gpushare-operator"}, "spec": {"leaseDurationSeconds": 1}})
    one.clock.now += TIMES.renew
    with pytest.raises(LeadershipLostError, match="another operator was at work"):
        await asyncio.wait_for(keeping, 30)
    with pytest.raises(NotSentError):
        await one.write()


@pytest.mark.usefixtures("one")
async def test_one_that_may_not_see_who_is_at_work_could_not_take_over(api: FakeApi) -> None:
    """As with an image that is newer than the manifests."""
    api.fail("GET", LEASE, status(403))
    async with operator(api, "two") as two:
        task = asyncio.create_task(two.leadership.win())
        await api.wait_for("a look", lambda: "cannot read the Lease" in two.leadership.waits_for)
        assert not two.leadership.can_take_over
        two.clock.now += TIMES.poll
        await api.wait_for("another look", lambda: "one is at work" in two.leadership.waits_for)
        assert two.leadership.can_take_over
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.usefixtures("one")
async def test_a_container_that_is_started_again_waits_for_nobody(api: FakeApi) -> None:
    async with operator(api, "one") as again:
        await asyncio.wait_for(again.leadership.win(), 30)
        await again.write()


async def test_a_write_whose_caller_is_cancelled_ends_before_the_client_does(api: FakeApi) -> None:
    """As at the end of the process: the next operator must not begin before."""
    arrived, answer = asyncio.Event(), asyncio.Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await answer.wait()
        return web.json_response({})

    api.fail("DELETE", NODE, slow)
    async with operator(api, "one") as one:
        await one.leadership.win()
        caller = asyncio.create_task(one.client.delete(NODE))
        await asyncio.wait_for(arrived.wait(), 30)
        caller.cancel()
        await asyncio.wait([caller])
        closing = asyncio.create_task(one.client.__aexit__(None, None, None))
        await asyncio.sleep(0.05)
        assert not closing.done()
        answer.set()
        await asyncio.wait_for(closing, 30)
        await one.leadership.give_up()
        assert holder(api) is None


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param((cut, cut), id="cut off"),  # aiohttp tries once more
        pytest.param((status(504),), id="given up by the server: its store may have it"),
    ],
)
async def test_with_a_write_that_may_still_land_the_lease_is_not_given_back(
    api: FakeApi, one: Operator, answers: tuple[Any, ...]
) -> None:
    api.fail("DELETE", NODE, *answers)
    with pytest.raises((ApiError, UnreachableError)):
        await one.client.delete(NODE)
    await one.leadership.give_up()
    assert holder(api) == "one"
    one.clock.now += TIMES.fence
    await one.leadership.give_up()
    assert holder(api) is None


async def test_after_a_write_that_was_refused_the_lease_is_given_back(api: FakeApi, one: Operator) -> None:
    api.fail("DELETE", NODE, status(403))
    with pytest.raises(ApiError):
        await one.client.delete(NODE)
    await one.leadership.give_up()
    assert holder(api) is None


def test_in_a_pod_its_name_is_the_pods() -> None:
    assert identity({"POD_ID": "gpushare-operator-7d4b9-x2x7k"}) == "gpushare-operator-7d4b9-x2x7k"
    assert identity({}) != identity({})


@pytest.mark.parametrize("seconds", ["0", "5", "-1", "x"])
def test_a_lease_too_short_to_be_kept_is_refused(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--lease-seconds", seconds])
    assert "not a whole number from 6 on" in capsys.readouterr().err
