"""What is true and still not the reason must not be called one, and what is of no use is not advised."""

from typing import Any

import msgspec
import pytest
from tests.samples.surroundings import asked, node, policy, program
from tests.samples.why import (
    MEMORY,
    bound_pods,
    card_json,
    full_node,
    memory_pod,
    owned_pod,
    pod_json,
    share_node_json,
    situation,
)

from gpushare_cli.decide.why.cluster_facts import ClusterFacts
from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.explanation import PodExplanation, WhyState
from gpushare_cli.decide.why.situation import SHARE_NODES_NAME
from gpushare_cli.gather.why.situation import read_pods
from gpushare_core.text.json_object import Json

TAINT = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
FORBIDDEN = {"unread": {SHARE_NODES_NAME: "403 Forbidden"}}


def codes(report: PodExplanation) -> set[str]:
    return {finding.code for finding in report.findings}


def decisive(report: PodExplanation) -> set[str]:
    return {finding.code for finding in report.findings if finding.is_decisive}


def plain_pod(**spec: object) -> Json:
    pod = pod_json(main={"cpu": 1})
    return {**pod, "spec": {**pod["spec"], **spec}}


@pytest.mark.parametrize(
    "cluster",
    [
        {"nodes": [node(taints=[TAINT])]},
        {"nodes": [node(unschedulable=True)]},
        {"policies": [], "share_nodes": []},
        {"policies": None, "is_installed": False, "share_nodes": []},
        {"programs": [program("operator", ready=0), program("extender", ready=0)]},
        {"policies": [policy(backend="Dedicated")]},
    ],
)
def test_what_is_wrong_with_cards_is_no_reason_for_a_pod_that_asks_for_none(cluster: dict[str, Any]) -> None:
    report = explain(asked(plain_pod(), **cluster))
    assert report.findings == []
    assert report.answer.endswith("asks for no shared cards: gpushare has no part in where it runs.")


def test_a_pod_without_cards_may_ask_for_a_node_that_shares_none() -> None:
    pod = plain_pod(nodeSelector={"kubernetes.io/hostname": "cpu-1"})
    assert not codes(explain(asked(pod, nodes=[node(), node("cpu-1")])))


def test_cards_of_another_device_plugin_are_not_ours() -> None:
    nodes = [node(taints=[TAINT]), node("other", offered={"nvidia.com/gpu": "8"})]
    assert not codes(explain(asked(pod_json(main={"nvidia.com/gpu": 1}), nodes=nodes)))


def test_a_misspelt_resource_without_a_policy_still_misses_the_policy() -> None:
    pod = pod_json(main={"gpushare/memory": 4})
    assert "NoPolicy" in decisive(explain(asked(pod, policies=[], share_nodes=[])))


def test_nodes_whose_cards_cannot_be_read_are_not_said_to_share_none() -> None:
    pod = memory_pod(4, nodeSelector={"kubernetes.io/hostname": "gpu-1"})
    not_ready = policy(conditions={"Ready": ("False", "NodesMissing", "gpu-9: there is no such node")})
    report = explain(asked(pod, share_nodes=[], policies=[not_ready], more=FORBIDDEN))
    assert (decisive(report), report.state) == (set(), WhyState.UNKNOWN)


def test_each_node_lacks_something_else() -> None:
    """One has no CPU left and the other one no memory: it fits neither."""
    pod = memory_pod(4)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4", "memory": "8Gi"}
    nodes = [node("gpu-1", offered={"cpu": "2"}), node("gpu-2", offered={"memory": "4Gi"})]
    sharing = [share_node_json(name, card_json(0, node=name)) for name in ("gpu-1", "gpu-2")]
    report = explain(asked(pod, nodes=nodes, share_nodes=sharing))
    assert (report.state, decisive(report)) == (WhyState.WAITING, {"NoCpu", "NoMemory"})
    assert "of the 2 nodes whose cards have room 1 has too little left; the others" in report.answer


def test_only_nodes_that_have_everything_are_said_to_take_it() -> None:
    pod = memory_pod(4)
    pod["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "4"}
    nodes = [node("gpu-1", offered={"cpu": "2"}), node("gpu-2")]
    sharing = [share_node_json(name, card_json(0, node=name)) for name in ("gpu-1", "gpu-2")]
    report = explain(asked(pod, nodes=nodes, share_nodes=sharing))
    assert report.answer == "Pod ml/train would get its cards now, on gpu-2."


def test_a_node_that_does_not_say_what_it_has_lacks_nothing() -> None:
    half_written = node()
    half_written.status.allocatable = None
    assert explain(asked(nodes=[half_written])).state is WhyState.FITS


def test_taking_the_taint_away_is_not_said_to_be_enough_where_the_cards_are_full() -> None:
    report = explain(asked(nodes=[node(taints=[TAINT])], share_nodes=[full_node("gpu-1")]))
    (taint,) = report.findings
    assert taint.advice[-1] == (
        "That alone does not help: none of these nodes has room for it on its cards now."
    )


def test_the_node_that_is_to_be_uncordoned_is_one_with_room() -> None:
    nodes = [node(name, unschedulable=True) for name in ("gpu-1", "gpu-2")]
    sharing = [full_node("gpu-1"), share_node_json("gpu-2", card_json(0, node="gpu-2"))]
    (cordoned,) = explain(asked(nodes=nodes, share_nodes=sharing)).findings
    assert cordoned.advice == ["kubectl uncordon gpu-2"]


def test_pods_that_cannot_be_read_are_not_said_to_be_in_nobodys_way() -> None:
    """A larger card has room once its pods go, and who they are is not known."""
    nodes = (full_node("gpu-1"), share_node_json("gpu-2", card_json(0, 40, node="gpu-2", held={"ml/a": 40})))
    report = explain(situation(memory_pod(20), nodes))
    assert "PodsGone" not in {remedy.code for remedy in report.remedies}


def test_a_card_that_is_sick_and_cordoned_has_to_be_uncordoned_as_well() -> None:
    card = card_json(1, health="Unhealthy", healthReason="Xid 79", cordoned=True)
    report = explain(situation(memory_pod(12), [share_node_json("gpu-4", card)]))
    (mend,) = (remedy for remedy in report.remedies if remedy.code == "Mend")
    assert mend.sentence == "Repair card 1 of gpu-4 (Xid 79) and uncordon it: it would fit there."


def test_a_container_that_asks_for_two_resources_is_not_told_to_ask_for_less() -> None:
    pod = pod_json(main={MEMORY: 4, "gpushare.io/card": 1})
    offers = {"memory": 16, "slice": 2, "card": 1}
    cards = [card_json(index, offers=offers) for index in range(2)]
    report = explain(situation(pod, [share_node_json("gpu-1", *cards, mode="Mixed")]))
    assert "CrowdedContainer" in decisive(report)
    assert report.remedies == []


def test_one_more_node_is_no_help_for_a_pod_of_a_daemon_set() -> None:
    """Its affinity requires its node by the name."""
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gpu-1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}
    pod = memory_pod(12, affinity={"nodeAffinity": required})
    report = explain(asked(pod, share_nodes=[full_node("gpu-1")]))
    (another,) = (remedy for remedy in report.remedies if remedy.code == "AnotherNode")
    assert not another.helps


def test_a_higher_priority_helps_on_another_node_than_the_nearest() -> None:
    """The pod in the way on the nearest node is of a DaemonSet."""
    staying = owned_pod("gpu-1-last", ownerReferences=[{"kind": "DaemonSet", "controller": True}])
    others = [owned_pod("gpu-1-0", priority=5), owned_pod("gpu-2-0", priority=5)]
    neighbours = {"gpu-1": bound_pods(staying), "gpu-2": bound_pods(*others[1:])}
    nodes = (full_node("gpu-1", 9, preemption="Disabled"), full_node("gpu-2", cards=2))
    report = explain(situation(memory_pod(12), nodes, neighbours=neighbours, budgets=[]))
    (higher,) = (remedy for remedy in report.remedies if remedy.code == "HigherPriority")
    assert (higher.helps, higher.pods) == (True, ["ml/gpu-2-0"])


def test_a_pod_for_which_others_are_evicted_comes_first() -> None:
    first = owned_pod("first", priority=9)
    first["status"]["nominatedNodeName"] = "gpu-1"
    report = explain(situation(memory_pod(4), [share_node_json("gpu-1", card_json(0))], waiting=[first]))
    assert "OthersComeFirst" in codes(report)
    assert any("ml/first comes first on gpu-1" in finding.sentence for finding in report.findings)


def test_pods_that_no_scheduler_looks_at_come_not_first() -> None:
    gated = owned_pod("gated", priority=9)
    gated["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    ending = owned_pod("ending", priority=9, deletionTimestamp="2026-11-21T10:00:00Z")
    pods = [gated, ending, owned_pod("waits", priority=9)]
    read = read_pods([msgspec.Raw(msgspec.json.encode(pod)) for pod in pods])
    assert [pod.metadata.name for _, pod in read] == ["waits"]


def test_the_only_large_card_is_cordoned() -> None:
    cards = [card_json(0), card_json(1, 40, cordoned=True)]
    report = explain(situation(memory_pod(20), [share_node_json("gpu-1", *cards)]))
    sentences = [finding.sentence for finding in report.findings if finding.code == "CardsTooSmall"]
    assert sentences == ["No card that takes new pods has 20 units (20Gi), not even an empty one, on gpu-1."]


def test_where_nodes_cannot_be_read_taints_may_keep_it_off() -> None:
    unread = ClusterFacts(unread={"Nodes": "403 Forbidden"})
    nodes = [share_node_json("gpu-1", card_json(0))]
    report = explain(situation(memory_pod(4), nodes, exists=False, cluster=unread))
    assert "on gpu-1; whether taints and selectors let it there cannot be known." in report.answer


def test_without_the_budgets_nobody_is_surely_evicted() -> None:
    neighbours = {"gpu-1": bound_pods(owned_pod("gpu-1-0"))}
    pod, nodes = memory_pod(12, priority=9), [full_node("gpu-1")]
    report = explain(situation(pod, nodes, neighbours=neighbours, budgets=None))
    (preemption,) = (remedy for remedy in report.remedies if remedy.code == "Preemption")
    assert "unless a PodDisruptionBudget forbids it, which cannot be known" in preemption.sentence


def test_what_a_pod_asks_for_as_a_whole_counts() -> None:
    report = explain(asked(memory_pod(4, resources={"requests": {"cpu": "9"}})))
    assert decisive(report) == {"NoCpu"}
