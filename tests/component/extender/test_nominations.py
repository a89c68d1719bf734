"""A pod that kube-scheduler has nominated in vain, as it calls the filter verb for it.

An answer with an error makes kube-scheduler take the nomination back: ``clearNominatedNode`` in its
``schedule_one.go``. Any other refusal leaves it where its preemption ends with an error, too.
"""

from collections.abc import AsyncIterator

import pytest
from tests.fakes.api_server import PODS, FakeApi, fake_api, status
from tests.fakes.extender_caller import SchedulerCaller
from tests.samples.extender import asked, holder_json, pod_json, reference, share_node

from gpushare_core.text.json_object import Json
from gpushare_extender.verbs.server import ExtenderApi

REFUSED = "insufficient GPU memory in one card: asked 10, largest free 6"


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    """Two pods of 10 units run on the cards of n1."""
    async with fake_api() as fake:
        for name, card in (("x", 0), ("y", 1)):
            fake.put(PODS, holder_json(name, card=card, units=10))
        yield fake


def nominated(node: str = "n1", *, units: int = 10) -> Json:
    pod = pod_json("p", units=units)
    pod["spec"]["priority"] = 10
    return {**pod, "status": {"nominatedNodeName": node}}


async def filtered(caller: SchedulerCaller, pod: Json, *names: str) -> Json:
    return await caller.post("/gpushare/filter", {"Pod": pod, "NodeNames": names})


def end(api: FakeApi, name: str) -> None:
    pod = api.pod(name)
    pod["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z"
    api.put(PODS, pod)


async def test_one_that_fits_nowhere_is_an_error(caller: SchedulerCaller) -> None:
    answer = await filtered(caller, nominated(), "n1", "n2")
    assert answer["Error"].startswith("the nomination of node n1 is given up")
    assert answer["Error"].endswith(REFUSED)


async def test_without_a_nomination_it_is_refused_as_ever(caller: SchedulerCaller) -> None:
    assert (await filtered(caller, nominated(""), "n1"))["FailedNodes"] == {"n1": REFUSED}


async def test_a_scheduler_that_sends_whole_nodes_is_told_as_well(caller: SchedulerCaller) -> None:
    nodes = {"items": [{"metadata": {"name": "n1"}}]}
    answer = await caller.post("/gpushare/filter", {"Pod": nominated(), "Nodes": nodes, "NodeNames": None})
    assert REFUSED in answer["Error"]


async def test_while_a_victim_ends_that_frees_a_card_it_stays(caller: SchedulerCaller, api: FakeApi) -> None:
    end(api, "y")
    assert (await filtered(caller, nominated(), "n1"))["FailedNodes"] == {"n1": REFUSED}


async def test_while_a_card_is_held_for_it_it_stays(caller: SchedulerCaller, extender: ExtenderApi) -> None:
    request = asked(10)
    extender.ledger.hold(reference("p"), node="n1", request=request, priority=10, gone={"uid-y"}, until=1.0)
    assert "Error" not in await filtered(caller, nominated(), "n1")


async def test_where_it_fits_another_node_it_passes_there(
    caller: SchedulerCaller, extender: ExtenderApi
) -> None:
    extender.ledger.set_share_node(share_node("n2", 16))
    assert (await filtered(caller, nominated(), "n1", "n2"))["NodeNames"] == ["n2"]


async def test_where_nobody_can_tell_what_ends_it_stays(caller: SchedulerCaller, api: FakeApi) -> None:
    api.fail("GET", PODS, status(500, "no"))
    assert (await filtered(caller, nominated(), "n1"))["FailedNodes"] == {"n1": REFUSED}
    assert "given up" in (await filtered(caller, nominated(), "n1"))["Error"]


async def test_it_is_looked_after_all_the_same(caller: SchedulerCaller, extender: ExtenderApi) -> None:
    """Others may be evicted for it, and it is tried again when a card has room."""
    await filtered(caller, nominated(), "n1")
    assert [preemptor.pod.name for preemptor in extender.attempts.preemptors.due(now=float("inf"))] == ["p"]
    assert extender.attempts.unschedulable.has_room("gpushare.io/memory", 10)
