"""Reservations confirmed long ago that no watch has shown, and those that a defect left."""

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from tests.fakes.api_server import PODS, FakeApi, fake_api, json_answer, status
from tests.samples.extender import asked, holder_json, pod_json, pod_update, reference, share_node

from gpushare_core.kube.client import KubeClient
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.stale_reservations import LOOK_SECONDS, STALE_SECONDS, StaleReservations

POD_C = "/api/v1/namespaces/default/pods/c"


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
    ledger.reserve(reference("a"), node="n1", request=asked(4))
    ledger.reservations.confirm("uid-a", now=0.0)
    return ledger


async def look(client: KubeClient, ledger: Ledger, *times: float) -> None:
    """Looks at each of ``times``."""
    moments = iter(times)
    now = 0.0

    async def sleep(seconds: float) -> None:
        nonlocal now
        assert seconds == LOOK_SECONDS
        if (moment := next(moments, None)) is None:
            raise EOFError
        now = moment

    timing = BindTiming(clock=lambda: now, sleep=sleep)
    with pytest.raises(EOFError):
        await StaleReservations(client, ledger, timing).release()


async def look_once(client: KubeClient, ledger: Ledger, *, now: float = 100.0) -> None:
    await look(client, ledger, now)


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


async def test_nor_does_an_answer_that_is_no_pod_free_them(
    api: FakeApi, client: KubeClient, ledger: Ledger
) -> None:
    """As from a proxy between."""
    api.fail("GET", "/api/v1/namespaces/default/pods/a", json_answer({}))
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
    ledger.reserve(reference("c"), node="n1", request=asked(4))
    ledger.reservations.abandon("uid-c", now=0.0)
    await look_once(client, ledger)
    assert ledger.holder("uid-c") is None


async def test_a_bind_task_looks_after_its_units_itself(client: KubeClient, ledger: Ledger) -> None:
    ledger.reserve(reference("c"), node="n1", request=asked(4))
    await look(client, ledger, 100.0, 200.0)
    assert ledger.holder("uid-c") is not None


async def test_an_answer_older_than_a_bind_that_has_ended_since_frees_nothing(
    api: FakeApi, client: KubeClient, ledger: Ledger
) -> None:
    ledger.reserve(reference("c"), node="n1", request=asked(4))
    ledger.reservations.abandon("uid-c", now=0.0)
    api.put(PODS, pod_json("c"))

    async def bound_meanwhile(_: object) -> web.StreamResponse:
        unbound = api.pod("c")
        ledger.reserve(reference("c"), node="n1", request=asked(4))
        ledger.reservations.confirm("uid-c", now=100.0)
        return web.json_response(unbound)

    api.fail("GET", POD_C, bound_meanwhile)
    await look_once(client, ledger)
    assert ledger.holder("uid-c") is not None


async def test_an_answer_older_than_what_a_watch_has_shown_frees_nothing(
    api: FakeApi, client: KubeClient, ledger: Ledger
) -> None:
    async def shown_meanwhile(_: object) -> web.StreamResponse:
        ledger.set_pod(pod_update("uid-a", c0=4))
        return web.json_response({}, status=404)

    api.fail("GET", "/api/v1/namespaces/default/pods/a", shown_meanwhile)
    await look_once(client, ledger)
    assert ledger.holder("uid-a") is not None


class TestOfALivingPod:
    """What a defect left, of a pod that is there: ``c``."""

    @pytest.fixture(autouse=True)
    def reserved(self, ledger: Ledger) -> None:
        ledger.reserve(reference("c"), node="n1", request=asked(4))
        ledger.reservations.abandon("uid-c", now=100.0)

    @pytest.mark.parametrize(
        ("node", "freed"),
        [
            pytest.param("", True, id="not bound"),
            pytest.param("n2", True, id="bound elsewhere"),
            pytest.param("n1", False, id="bound as reserved: the watch will show it"),
        ],
    )
    async def test_it_is_freed_unless_it_was_bound(
        self, api: FakeApi, client: KubeClient, ledger: Ledger, node: str, *, freed: bool
    ) -> None:
        api.put(PODS, pod_json("c", node=node))
        await look_once(client, ledger, now=112.0)
        assert (ledger.holder("uid-c") is None) == freed

    async def test_not_while_a_binding_may_still_take_effect(
        self, api: FakeApi, client: KubeClient, ledger: Ledger
    ) -> None:
        api.put(PODS, pod_json("c"))
        await look_once(client, ledger, now=111.0)
        assert ledger.holder("uid-c") is not None

    async def test_not_if_a_bind_has_begun_while_the_pod_was_read(
        self, api: FakeApi, client: KubeClient, ledger: Ledger
    ) -> None:
        async def begin(_: object) -> None:
            ledger.reserve(reference("c"), node="n1", request=asked(4))

        api.put(PODS, pod_json("c"))
        api.fail("GET", POD_C, begin)
        await look_once(client, ledger, now=112.0)
        assert ledger.holder("uid-c") is not None
