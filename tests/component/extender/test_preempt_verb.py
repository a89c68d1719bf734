"""The preempt verb as kube-scheduler calls it."""

from collections.abc import AsyncIterator

import pytest
from msgspec import structs
from tests.fakes.api_server import DISRUPTION_BUDGETS, PODS, FakeApi, fake_api, status
from tests.fakes.extender_caller import SchedulerCaller
from tests.samples.extender import asked, holder_json, pod_json, pod_update, reference, reporting, share_node
from tests.samples.preemption import budget_json

from gpushare_core.scheduling.ledger.node_sums import GONE_SECONDS
from gpushare_core.text.json_object import Json
from gpushare_extender.decide.waiting.sampled_pods import SAME_NODES
from gpushare_extender.evictions.scheduler_victims import MAX_NODES
from gpushare_extender.verbs.server import ExtenderApi


@pytest.fixture
async def api() -> AsyncIterator[FakeApi]:
    """Two pods of 10 units run on the cards of n1."""
    async with fake_api() as fake:
        for name, card, priority in (("x", 0, 5), ("y", 1, 1)):
            pod = holder_json(name, card=card, units=10)
            pod["spec"]["priority"] = priority
            fake.put(PODS, pod)
        yield fake


def preemptor(units: int | None = 10, *, policy: str = "PreemptLowerPriority") -> Json:
    pod = pod_json("p", units=units)
    pod["spec"].update(priority=10, preemptionPolicy=policy)
    return pod


async def preempt(caller: SchedulerCaller, pod: Json | None = None, **proposed: list[str]) -> Json:
    """``n1=["uid-x"]`` stands for a node with the victims that the scheduler found."""
    victims = {node: {"Pods": [{"UID": uid} for uid in uids]} for node, uids in proposed.items()}
    body = {"Pod": pod or preemptor(), "NodeNameToMetaVictims": victims, "NodeNameToVictims": None}
    answer: Json = (await caller.post("/gpushare/preempt", body))["NodeNameToMetaVictims"]
    return answer


def end(api: FakeApi, name: str) -> None:
    pod = api.pod(name)
    pod["metadata"]["deletionTimestamp"] = "2026-11-22T10:00:00Z"
    api.put(PODS, pod)


def y_leaves(extender: ExtenderApi) -> None:
    extender.ledger.pod_deleted("uid-y", now=0.0)


def report(extender: ExtenderApi, *, y: int = 0) -> None:
    """The plugin tells what the kubelet has given out."""
    told = reporting(share_node("n1"), 0, **{"uid-x": 10})
    extender.ledger.set_share_node(reporting(told, 1, **{"uid-y": y}) if y else told)


Y_GOES = {"n1": {"Pods": [{"UID": "uid-y"}], "NumPDBViolations": 0}}


async def test_an_empty_proposal_gets_the_least_important_pod_that_frees_a_card(
    caller: SchedulerCaller,
) -> None:
    assert await preempt(caller, n1=[]) == Y_GOES


async def test_a_node_on_which_nothing_helps_is_dropped(caller: SchedulerCaller) -> None:
    assert await preempt(caller, n1=["uid-y"], n2=["uid-z"], n3=[]) == Y_GOES


async def test_on_a_node_that_takes_no_new_pods_nobody_is_evicted(
    caller: SchedulerCaller, extender: ExtenderApi
) -> None:
    """kube-scheduler looks for victims by itself where the sum of a node does not fit."""
    extender.ledger.set_share_node(share_node("n1", closed_reason="node(s) that take no new pods"))
    assert await preempt(caller, n1=["uid-x", "uid-y"]) == {}


async def test_a_pod_that_asks_for_nothing_of_ours_is_not_our_business(caller: SchedulerCaller) -> None:
    answer = await preempt(caller, preemptor(units=None), n3=["uid-z"])
    assert answer == {"n3": {"Pods": [{"UID": "uid-z"}], "NumPDBViolations": 0}}


@pytest.mark.parametrize(
    ("units", "answer"),
    [
        pytest.param(None, {"n3": {"Pods": [{"UID": "uid-z"}], "NumPDBViolations": 0}}, id="nothing else"),
        pytest.param(10, Y_GOES, id="cards of ours besides"),
    ],
)
async def test_what_is_another_plugins_now_is_not_our_business(
    caller: SchedulerCaller, units: int | None, answer: Json
) -> None:
    """``nvidia.com/gpu`` is ours only while a node serves it."""
    pod = preemptor(units=units)
    pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "1"
    assert await preempt(caller, pod, **({"n1": ["uid-y"]} if units else {"n3": ["uid-z"]})) == answer


async def test_a_scheduler_that_sends_whole_pods_is_answered_as_well(caller: SchedulerCaller) -> None:
    victims = {"n1": {"Pods": [pod_json("y", node="n1")], "NumPDBViolations": 0}}
    body = {"Pod": preemptor(), "NodeNameToVictims": victims, "NodeNameToMetaVictims": None}
    assert (await caller.post("/gpushare/preempt", body))["NodeNameToMetaVictims"] == Y_GOES


async def test_a_budget_is_honoured_and_counted(caller: SchedulerCaller, api: FakeApi) -> None:
    pod = api.pod("y")
    pod["metadata"]["labels"] = {"app": "web"}
    api.put(PODS, pod)
    api.put(DISRUPTION_BUDGETS, budget_json(app="web"))
    assert await preempt(caller, n1=[]) == {"n1": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 0}}
    assert await preempt(caller, n1=["uid-y"]) == {"n1": {"Pods": [{"UID": "uid-y"}], "NumPDBViolations": 1}}


async def test_one_that_never_preempts_gets_no_victims_of_ours(caller: SchedulerCaller) -> None:
    assert await preempt(caller, preemptor(policy="Never"), n1=[]) == {}


async def test_where_it_is_off_none_are_added(caller: SchedulerCaller, extender: ExtenderApi) -> None:
    extender.ledger.set_share_node(structs.replace(share_node("n1"), preempts=False))
    assert await preempt(caller, n1=[]) == {}
    assert await preempt(caller, n1=["uid-y"]) == Y_GOES


async def test_while_a_card_is_held_for_it_nothing_more_is_evicted(
    caller: SchedulerCaller, extender: ExtenderApi, api: FakeApi
) -> None:
    extender.ledger.hold(reference("p"), node="n1", request=asked(10), priority=10, gone={"uid-y"}, until=1.0)
    end(api, "y")
    assert await preempt(caller, n1=["uid-x"]) == {}


async def test_what_its_victims_leave_is_held_from_the_answer_on(
    caller: SchedulerCaller, extender: ExtenderApi
) -> None:
    """A replacement of the victim may be tried before kube-scheduler asks about the pod again."""
    report(extender, y=10)
    assert await preempt(caller, n1=["uid-y"]) == Y_GOES
    y_leaves(extender)
    report(extender)
    replacement = {"Pod": pod_json("z", units=10), "NodeNames": ["n1"]}
    assert "n1" in (await caller.post("/gpushare/filter", replacement))["FailedNodes"]
    assert (await caller.post("/gpushare/filter", {"Pod": preemptor(), "NodeNames": ["n1"]}))["NodeNames"]


async def test_a_victim_that_is_gone_frees_a_card_though_the_plugin_has_not_told(
    caller: SchedulerCaller, extender: ExtenderApi, api: FakeApi
) -> None:
    assert await preempt(caller, n1=["uid-y"]) == Y_GOES
    report(extender, y=10)
    y_leaves(extender)
    api.delete(PODS, "y", "default")
    assert await preempt(caller, n1=["uid-x"]) == {}


async def test_what_a_kubelet_does_not_release_is_not_waited_for_for_ever(
    caller: SchedulerCaller, extender: ExtenderApi, api: FakeApi
) -> None:
    """Somebody deleted by force what hangs in its driver: the plugin goes on telling of it."""
    report(extender, y=10)
    y_leaves(extender)
    api.delete(PODS, "y", "default")
    extender.ledger.free_unreleased(now=GONE_SECONDS - 1.0)
    assert await preempt(caller, n1=[]) == {}
    extender.ledger.free_unreleased(now=GONE_SECONDS)
    assert await preempt(caller, n1=[]) == {"n1": {"Pods": [{"UID": "uid-x"}], "NumPDBViolations": 0}}


async def test_nor_where_its_node_is_not_shared_any_more(extender: ExtenderApi) -> None:
    report(extender, y=10)
    for uid in ("uid-x", "uid-y"):
        extender.ledger.pod_deleted(uid, now=0.0)
    extender.ledger.drop_share_node("n1")
    extender.ledger.free_unreleased(now=GONE_SECONDS)
    assert extender.ledger.node("n1") is None


async def test_where_kube_scheduler_has_not_evicted_them_it_is_told_again(caller: SchedulerCaller) -> None:
    assert await preempt(caller, n1=["uid-y"]) == Y_GOES
    assert await preempt(caller, n1=["uid-y"]) == Y_GOES


async def test_of_several_nodes_the_one_is_told_where_least_goes(
    caller: SchedulerCaller, extender: ExtenderApi, api: FakeApi
) -> None:
    """So it is certain which one kube-scheduler nominates."""
    pod = pod_json("w", node="n2")
    api.put(PODS, pod)
    extender.ledger.set_share_node(share_node("n2", 16))
    extender.ledger.set_pod(pod_update("uid-w", node="n2", c0=10))
    answer = await preempt(caller, n1=["uid-y"], n2=["uid-w"])
    assert answer == {"n2": {"Pods": [{"UID": "uid-w"}], "NumPDBViolations": 0}}
    assert [hold.node for hold in extender.ledger.holds.values()] == ["n2"]


async def test_a_pod_that_is_nominated_is_held_what_ends_there(
    caller: SchedulerCaller, extender: ExtenderApi, api: FakeApi
) -> None:
    """Another extender answered, or this one was restarted since."""
    end(api, "y")
    pod = {**preemptor(), "status": {"nominatedNodeName": "n1"}}
    await caller.post("/gpushare/filter", {"Pod": pod, "NodeNames": ["n1"]})
    assert [(hold.uid, [*hold.holder.shares]) for hold in extender.ledger.holds.values()] == [
        ("uid-p", ["n1-1"])
    ]


async def test_while_nodes_are_left_out_that_it_fits_nothing_is_evicted_for_it(
    caller: SchedulerCaller, extender: ExtenderApi
) -> None:
    """Another extender refuses all that the pod was offered; it is offered the others at its next attempt."""
    fitting = [f"many-{number}" for number in range(20)]
    for name in fitting:
        extender.ledger.set_share_node(share_node(name))
    body = {"Pod": preemptor(), "NodeNames": [*fitting, "n1"]}
    assert len((await caller.post("/gpushare/filter", body))["NodeNames"]) == 16
    assert await preempt(caller, n1=["uid-y"]) == {}
    assert len((await caller.post("/gpushare/filter", body))["NodeNames"]) == 20
    assert await preempt(caller, n1=["uid-y"]) == Y_GOES


async def test_while_nodes_are_looked_for_that_it_fits_nothing_is_evicted_for_it(
    caller: SchedulerCaller, extender: ExtenderApi
) -> None:
    """kube-scheduler has looked at some of many nodes, none of which has room on one card."""
    full = [f"full-{number}" for number in range(100)]
    for share in (*(share_node(name, 8) for name in full), share_node("room", 16)):
        extender.ledger.set_share_node(share)
    body = {"Pod": preemptor(), "NodeNames": [*full, "n1"]}
    for _ in range(SAME_NODES):
        assert "others" in (await caller.post("/gpushare/filter", body))["FailedNodes"]["n1"]
        assert await preempt(caller, n1=["uid-y"]) == {}
    assert "others" not in (await caller.post("/gpushare/filter", body))["FailedNodes"]["n1"]
    assert await preempt(caller, n1=["uid-y"]) == Y_GOES


@pytest.mark.parametrize("fault", [status(500), status(403)])
async def test_what_cannot_be_read_is_left_out(caller: SchedulerCaller, api: FakeApi, fault: object) -> None:
    api.fail("GET", PODS, fault)  # type: ignore[arg-type]
    assert await preempt(caller, n1=[]) == {}
    api.fail("GET", DISRUPTION_BUDGETS, fault)  # type: ignore[arg-type]
    assert await preempt(caller, n1=[]) == {}
    assert await preempt(caller, n1=[]) == Y_GOES


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"Pod":{},"NodeNameToMetaVictims":{"n1":{"Pods":[{}]}}}'])
async def test_what_is_no_call_of_the_verb_is_refused(caller: SchedulerCaller, body: str) -> None:
    url = caller.server.make_url("/gpushare/preempt")
    async with caller.session.post(url, data=body) as response:
        assert (response.status, "not the arguments of a preempt" in await response.text()) == (400, True)


async def test_a_nil_proposal_is_an_empty_one(caller: SchedulerCaller) -> None:
    body = {"Pod": preemptor(), "NodeNameToMetaVictims": {"n1": None}}
    assert (await caller.post("/gpushare/preempt", body))["NodeNameToMetaVictims"] == Y_GOES


async def test_where_nothing_helps_on_the_first_nodes_the_others_are_looked_at(
    caller: SchedulerCaller, extender: ExtenderApi, api: FakeApi
) -> None:
    """The scheduler offers the same ones each time."""
    names = [f"m{number}" for number in range(2 * MAX_NODES)]
    for name in names:
        pod = pod_json(f"pod-{name}", node=name)
        pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "controller": True}]
        api.put(PODS, pod)
        extender.ledger.set_share_node(share_node(name, 16))
        extender.ledger.set_pod(pod_update(f"uid-pod-{name}", node=name, c0=8))
    nobody: dict[str, list[str]] = {name: [] for name in names}
    assert await preempt(caller, None, n1=[], **nobody) == Y_GOES
