"""kube-scheduler is made to try pods again that would fit now."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from functools import partial

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer
from tests.fakes.api_server import PODS, SHARE_NODES, STORAGE_CAPACITIES, FakeApi, cut, fake_api, status
from tests.fakes.extender_caller import SchedulerCaller
from tests.fakes.extender_clock import FakeClock
from tests.fakes.leaping_time import leap
from tests.samples.extender import RESOURCE, asked, holder_json, pod_json, share_node_json

from gpushare_core.text.json_object import Json
from gpushare_extender.arguments import Options
from gpushare_extender.cluster import activation
from gpushare_extender.cluster.activation import PodActivation
from gpushare_extender.decide.waiting.offered_pods import ATTEMPT_SECONDS
from gpushare_extender.decide.waiting.unschedulable_pods import UnschedulablePods
from gpushare_extender.extender import Extender
from gpushare_extender.main import kube_client
from gpushare_extender.transport.endpoints import Address
from gpushare_extender.verbs.server import application

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
OBJECT = f"{STORAGE_CAPACITIES}/gpushare-wake-up"


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeApi]:
    """One card of 16, held in full by the pod ``x``, as the kubelet confirms; ``a`` waits."""
    monkeypatch.setattr(activation, "SETTLE_SECONDS", 0.1)
    monkeypatch.setattr(activation, "APART_SECONDS", 0.1)
    async with fake_api() as fake:
        fake.put(SHARE_NODES, reported("uid-x"))
        fake.put(PODS, holder_json("x", units=16))
        yield fake


def reported(*uids: str) -> Json:
    node = share_node_json("n1", cards=1)
    pods = [
        {"uid": uid, "namespace": "default", "name": "x", "container": "main", "units": 16} for uid in uids
    ]
    node["status"]["cards"][0].update(allocatedUnits=16 * len(pods), pods=pods)
    return node


@pytest.fixture
async def caller(api: FakeApi) -> AsyncIterator[SchedulerCaller]:
    async with kube_client(api.credentials()) as client, ClientSession() as session:
        extender = Extender.create(client, Options(listen=Address("127.0.0.1", 0)))
        tasks = [asyncio.create_task(task) for task in extender.tasks()]
        for watch in extender.watches:
            await asyncio.wait_for(watch.health.until_applied(0), 30)
        server = TestServer(application(extender.api))
        await server.start_server(shutdown_timeout=0.1)
        yield SchedulerCaller(session, server)
        await server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def touches(api: FakeApi) -> int:
    return len(api.requests("PATCH", OBJECT))


async def test_units_that_the_kubelet_releases_later_than_the_pod_goes(
    api: FakeApi, caller: SchedulerCaller
) -> None:
    api.delete(PODS, "x", "default")
    assert (await caller.filter("n1", units=16))["NodeNames"] == []
    await asyncio.sleep(0.3)
    assert touches(api) == 0, "nothing has become free yet"
    api.put(SHARE_NODES, reported())
    await api.wait_for("a reason to try again", lambda: touches(api) == 1)
    assert (await caller.filter("n1", units=16))["NodeNames"] == ["n1"]


@pytest.fixture
def many(api: FakeApi) -> list[str]:
    """Nodes that a pod fits, more than it is offered."""
    names = [f"many-{number}" for number in range(20)]
    for name in names:
        api.put(SHARE_NODES, share_node_json(name))
    return names


async def test_other_nodes_than_those_that_another_extender_refused(
    api: FakeApi, many: list[str], caller: SchedulerCaller
) -> None:
    """It refused all that were offered, so kube-scheduler asks for no scores, and for no bind."""
    assert len((await caller.filter(*many))["NodeNames"]) == 16
    await api.wait_for("a reason to try again", lambda: touches(api) == 1)
    assert len((await caller.filter(*many))["NodeNames"]) == 20


async def test_a_pod_with_which_kube_scheduler_proceeds_activates_nobody(
    api: FakeApi, many: list[str], caller: SchedulerCaller
) -> None:
    some = (await caller.filter(*many))["NodeNames"]
    async with caller.session.post(
        caller.server.make_url("/gpushare/prioritize"), json={"Pod": pod_json("a"), "NodeNames": some}
    ) as response:
        assert response.status == 200
    await asyncio.sleep(2 * ATTEMPT_SECONDS + 0.5)
    assert touches(api) == 0


async def test_a_deletion_that_the_extender_hears_of_after_the_scheduler(
    api: FakeApi, caller: SchedulerCaller
) -> None:
    api.put(SHARE_NODES, reported())
    assert (await caller.filter("n1", units=16))["NodeNames"] == []
    api.delete(PODS, "x", "default")
    await api.wait_for("a reason to try again", lambda: touches(api) == 1)


async def test_what_the_scheduler_tries_by_itself_costs_nothing(
    api: FakeApi, caller: SchedulerCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activation, "SETTLE_SECONDS", 60.0)
    assert (await caller.filter("n1", units=16))["NodeNames"] == []
    api.put(SHARE_NODES, reported())
    api.delete(PODS, "x", "default")
    await until(caller, passes=True)
    leap(60.0)
    await asyncio.sleep(0.3)
    assert touches(api) == 0


@pytest.mark.usefixtures("caller")
async def test_while_no_pod_waits_none_is_activated(api: FakeApi) -> None:
    api.put(SHARE_NODES, reported())
    api.delete(PODS, "x", "default")
    await asyncio.sleep(0.3)
    assert touches(api) == 0


async def test_an_object_that_is_missing_is_made(api: FakeApi, caller: SchedulerCaller) -> None:
    del api.objects[STORAGE_CAPACITIES]["", "gpushare-wake-up"]
    await caller.filter("n1", units=16)
    api.put(SHARE_NODES, reported())
    api.delete(PODS, "x", "default")
    await api.wait_for("the object", lambda: bool(api.objects[STORAGE_CAPACITIES]))


async def test_it_is_touched_again_when_there_is_room_again(api: FakeApi, caller: SchedulerCaller) -> None:
    api.delete(PODS, "x", "default")
    for expected in (1, 2):
        api.put(SHARE_NODES, reported(f"other-{expected}"))
        await until(caller, passes=False)
        api.put(SHARE_NODES, reported())
        await api.wait_for("a touch", partial(has_touched, api, expected))


class TestFailures:
    """Nobody else knows that these pods wait."""

    @pytest.fixture
    def refused(self) -> UnschedulablePods:
        return UnschedulablePods()

    @pytest.fixture
    async def waking(self, api: FakeApi, refused: UnschedulablePods) -> AsyncIterator[PodActivation]:
        clock = FakeClock()
        async with kube_client(api.credentials()) as client:
            waking = PodActivation(client, "gpushare-system", refused, lambda: NOW, clock.sleep)
            task = asyncio.create_task(waking.run())
            yield waking
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def test_a_touch_that_fails_is_tried_again(
        self, api: FakeApi, refused: UnschedulablePods, waking: PodActivation
    ) -> None:
        api.fail("PATCH", OBJECT, status(503), status(403), cut)
        refused.refused("a", asked(4))
        waking.has_room(RESOURCE, 8)
        await api.wait_for("a touch that succeeds", lambda: touches(api) == 4)
        touched = api.objects[STORAGE_CAPACITIES]["", "gpushare-wake-up"]["metadata"]
        assert touched["annotations"] == {"gpushare.io/room-since": "2026-11-21T10:00:00+00:00"}

    async def test_pods_that_wait_by_then_are_activated_by_the_same_touch(
        self, api: FakeApi, refused: UnschedulablePods, waking: PodActivation
    ) -> None:
        async def fail_while_another_comes(request: web.Request) -> web.StreamResponse | None:
            refused.refused("b", asked(4))
            waking.has_room(RESOURCE, 12)
            return await status(503)(request)

        api.fail("PATCH", OBJECT, fail_while_another_comes)
        refused.refused("a", asked(4))
        waking.has_room(RESOURCE, 8)
        await api.wait_for("a touch that succeeds", lambda: touches(api) == 2)
        await asyncio.sleep(0.1)
        assert touches(api) == 2


async def until(caller: SchedulerCaller, *, passes: bool) -> None:
    """Asks until a pod of 16 passes, or does not."""
    async with asyncio.timeout(30):
        while bool((await caller.filter("n1", units=16))["NodeNames"]) != passes:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def has_touched(api: FakeApi, times: int) -> bool:
    return touches(api) == times
