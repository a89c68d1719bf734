"""A pod whose own annotations leave no room for ours is not bound, and its card stays free.

A pod that was bound with more than Kubernetes allows could be written by nobody any more, not by its kubelet.
"""

import asyncio
import dataclasses
from datetime import UTC, datetime

import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.fakes.api_server import PODS, FakeApi, cut, status
from tests.fakes.extender_clock import FakeClock
from tests.fakes.following_extender import permitted
from tests.samples.extender import ANNOTATION, pod_json, pod_request, reference, share_node

from gpushare_core.api.timestamps import unix_nanoseconds
from gpushare_core.dialects.annotation_room import MAX_BYTES, size_of
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.kube.client import KubeClient
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import PodVersion
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.deadlines import BindTiming

NOW = datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC)
POD = "/api/v1/namespaces/default/pods/a"
BINDING = f"{POD}/binding"
TOO_LITTLE = "gpushare writes up to"


@pytest.fixture
def ledger() -> Ledger:
    ledger = Ledger()
    ledger.replace_share_nodes([share_node("n1")])
    return ledger


@pytest.fixture
def binder(client: KubeClient, ledger: Ledger, clock: FakeClock) -> Binder:
    timing = BindTiming(
        clock=clock, now=lambda: NOW, sleep=clock.sleep, answer_within=60.0, uncertain_for=12.0
    )
    return Binder(client, ledger, permitted, timing)


def filled(*, room: int) -> Json:
    """A pod whose annotations leave so many bytes."""
    return pod_json("a", units=4, annotations={"filler": "x" * (MAX_BYTES - len("filler") - room)})


def shown(api: FakeApi, binder: Binder) -> None:
    """kube-scheduler has asked for nodes for the pod as it is."""
    version = PodVersion(api.pod("a")["metadata"]["resourceVersion"])
    binder.expected.put("uid-a", pod_request(4), authenticated=binder.ledger.resources, version=version)


def used(ledger: Ledger) -> int:
    sums = ledger.node("n1")
    return sum(card.allocated for card in sums.cards()) if sums else 0


def is_bound(api: FakeApi) -> bool:
    return "nodeName" in api.pod("a")["spec"]


def calls(api: FakeApi) -> list[str]:
    return [request.method for request in api.seen]


async def test_what_does_not_fit_is_not_sent(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    api.put(PODS, filled(room=10))
    refusal = await binder.bind(reference(), "n1")
    assert TOO_LITTLE in refusal
    assert f"{MAX_BYTES - 10} bytes of annotations" in refusal
    assert (is_bound(api), used(ledger), calls(api)) == (False, 0, ["GET"])


@pytest.mark.parametrize("missing", [0, 1], ids=["to the byte", "one too few"])
@pytest.mark.parametrize("name", DIALECTS)
async def test_there_is_room_for_the_words_of_the_dialect_and_of_the_plugin(
    api: FakeApi, binder: Binder, ledger: Ledger, name: str, missing: int
) -> None:
    dialect = DIALECTS[name]
    ledger.set_share_node(replace(share_node("n1"), dialect=dialect))
    api.put(PODS, pod_json("b", units=4))
    assert await binder.bind(reference("b"), "n1") == ""
    written = api.pod("b")["metadata"]["annotations"]
    later = dialect.codec.assignment_annotations(ResourceClass.MEMORY, unix_nanoseconds(NOW))
    api.put(PODS, filled(room=size_of({**written, **later}) - missing))
    assert (TOO_LITTLE in await binder.bind(reference(), "n1")) == bool(missing)
    assert (is_bound(api), used(ledger)) == ((False, 4) if missing else (True, 8))


async def test_a_copy_of_a_large_allocation_is_written_over(api: FakeApi, binder: Binder) -> None:
    api.put(PODS, pod_json("a", units=4, annotations={ANNOTATION: "x" * (MAX_BYTES - len(ANNOTATION))}))
    assert await binder.bind(reference(), "n1") == ""
    assert size_of(api.pod("a")["metadata"]["annotations"]) < 1000


async def test_the_binding_names_the_version_that_was_looked_at(api: FakeApi, binder: Binder) -> None:
    sent: list[Json] = []

    async def note(request: web.Request) -> None:
        sent.append(await request.json())

    shown(api, binder)
    version = api.pod("a")["metadata"]["resourceVersion"]
    api.fail("POST", BINDING, note)
    assert await binder.bind(reference(), "n1") == ""
    assert [body["metadata"]["resourceVersion"] for body in sent] == [version]
    assert calls(api) == ["POST"], "nobody else is asked"


async def test_a_pod_that_was_changed_since_its_filter_is_looked_at_again_and_bound(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    """Such as by kube-scheduler itself, which writes into the status that the pod was unschedulable."""
    shown(api, binder)
    api.put(PODS, pod_json("a", units=4, annotations={"note": "new"}))
    assert await binder.bind(reference(), "n1") == ""
    assert (is_bound(api), used(ledger), calls(api)) == (True, 4, ["POST", "GET", "POST"])


async def test_a_pod_that_was_filled_since_its_filter_is_not_bound(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    shown(api, binder)
    api.put(PODS, filled(room=10))
    assert TOO_LITTLE in await binder.bind(reference(), "n1")
    assert (is_bound(api), used(ledger), calls(api)) == (False, 0, ["POST", "GET"])


async def test_a_pod_that_changes_all_the_time_is_given_up_when_kube_scheduler_gives_up(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    async def change(_: web.Request) -> None:
        api.put(PODS, pod_json("a", units=4, annotations={"note": str(clock.now)}))

    began = clock.now
    shown(api, binder)
    api.fail("POST", BINDING, *[change] * 100)
    assert "somebody changes it again and again" in await binder.bind(reference(), "n1")
    assert (is_bound(api), used(ledger)) == (False, 0)
    answer_within = binder.timing.answer_within
    assert answer_within <= clock.now - began < answer_within + 11.0
    assert len(api.requests("POST", BINDING)) < 20, "with pauses that grow"


async def test_a_pod_that_changes_during_every_pause_is_bound(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    """As by a controller that writes every 200 ms: what was read before a pause is of no use after it."""

    async def change(_: web.Request) -> None:
        api.put(PODS, pod_json("a", units=4, annotations={"note": str(clock.now)}))

    async def pause(seconds: float) -> None:
        await clock.sleep(seconds)
        api.put(PODS, pod_json("a", units=4, annotations={"note": str(clock.now)}))

    shown(api, binder)
    binder.timing = dataclasses.replace(binder.timing, sleep=pause)
    api.fail("POST", BINDING, *[change] * 3)
    assert await binder.bind(reference(), "n1") == ""
    assert (is_bound(api), used(ledger), len(api.requests("POST", BINDING))) == (True, 4, 4)


async def test_units_stay_reserved_while_a_binding_of_the_pod_before_it_was_filled_may_land(
    api: FakeApi, binder: Binder, ledger: Ledger, clock: FakeClock
) -> None:
    """Nothing more is sent for it, and what was sent may yet take effect."""
    sent = clock.now

    async def fill(request: web.Request) -> web.StreamResponse:
        api.put(PODS, filled(room=10))
        return await cut(request)

    async def look(_: web.Request) -> None:
        assert used(ledger) == 4
        await asyncio.sleep(0)

    shown(api, binder)
    api.fail("POST", BINDING, fill)
    api.fail("GET", POD, *[look] * 3)
    answer = asyncio.create_task(binder.bind(reference(), "n1"))
    await answer
    await binder.drain(5)
    assert (is_bound(api), used(ledger), len(api.requests("POST", BINDING))) == (False, 0, 1)
    assert clock.now >= sent + 12.0


async def test_a_binding_whose_answer_was_lost_counts_though_the_pod_is_another_version_by_then(
    api: FakeApi, binder: Binder, ledger: Ledger
) -> None:
    async def land(request: web.Request) -> web.StreamResponse:
        assert api.bind(("default", "a"), await request.json()) is None
        return await cut(request)

    shown(api, binder)
    api.fail("POST", BINDING, land)
    assert await binder.bind(reference(), "n1") == ""
    assert (is_bound(api), used(ledger)) == (True, 4)


async def test_a_conflict_of_an_unchanged_pod_is_final(api: FakeApi, binder: Binder, ledger: Ledger) -> None:
    shown(api, binder)
    api.fail("POST", BINDING, status(409, "the pod is being deleted"))
    assert "being deleted" in await binder.bind(reference(), "n1")
    assert (used(ledger), calls(api)) == (0, ["POST", "GET"])
