"""Reservations confirmed long ago that no watch has shown, and those that a defect left."""

from collections.abc import AsyncIterator, Collection

import pytest
from tests.fakes.api_server import PODS, FakeApi, fake_api, status
from tests.samples.extender import holder_json, pod_json, reference, share_node

from gpushare_core.json_object import Json
from gpushare_core.kube.client import KubeClient
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.stale_reservations import STALE_SECONDS, release_stale_reservations
from gpushare_extender.ledger.ledger import Ledger


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    async with fake_api() as fake:
        yield fake


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[KubeClient]:
    async with KubeClient(api.credentials()) as opened:
        yield opened


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.set_share_node(share_node("n1"))
    ledger.reserve(reference("a"), node="n1", units=4)
    ledger.confirm("uid-a", now=0.0)
    return ledger


async def look_once(
    client: KubeClient, ledger: Ledger, *, now: float = 100.0, being_bound: Collection[str] = ()
) -> None:
    rounds = iter([None])

    async def sleep(seconds: float) -> None:
        assert seconds == STALE_SECONDS
        if next(rounds, "over") == "over":
            raise EOFError

    timing = BindTiming(clock=lambda: now, sleep=sleep)
    with pytest.raises(EOFError):
        await release_stale_reservations(client, ledger, timing, being_bound=lambda: being_bound)


@pytest.mark.parametrize(
    "bearer",
    [
        pytest.param(None, id="deleted"),
        pytest.param(pod_json("a", uid="uid-b"), id="recreated"),
        pytest.param(holder_json("a", phase="Failed"), id="finished"),
    ],
)
async def test_a_pod_that_is_gone_is_freed(
    api: FakeApi, client: KubeClient, ledger: Ledger, bearer: Json | None
) -> None:
    if bearer:
        api.put(PODS, bearer)
    await look_once(client, ledger)
    assert ledger.holder("uid-a") is None


async def test_a_pod_that_runs_keeps_its_units(api: FakeApi, client: KubeClient, ledger: Ledger) -> None:
    api.put(PODS, holder_json("a"))
    await look_once(client, ledger)
    assert ledger.holder("uid-a") is not None


async def test_without_an_answer_the_units_stay(api: FakeApi, client: KubeClient, ledger: Ledger) -> None:
    api.fail("GET", "/api/v1/namespaces/default/pods/a", status(503))
    await look_once(client, ledger)
    assert ledger.holder("uid-a") is not None


async def test_what_was_confirmed_just_now_is_left_to_the_watch(
    api: FakeApi, client: KubeClient, ledger: Ledger
) -> None:
    await look_once(client, ledger, now=STALE_SECONDS - 1)
    assert api.seen == []


async def test_what_a_defect_left_unconfirmed_is_freed_with_its_pod(
    client: KubeClient, ledger: Ledger
) -> None:
    ledger.reserve(reference("c"), node="n1", units=4)
    await look_once(client, ledger)
    assert ledger.holder("uid-c") is None


async def test_a_bind_task_looks_after_its_units_itself(client: KubeClient, ledger: Ledger) -> None:
    ledger.reserve(reference("c"), node="n1", units=4)
    await look_once(client, ledger, being_bound={"uid-c"})
    assert ledger.holder("uid-c") is not None
