"""Pods that have a node, or have ended: where they are, on which cards, beside whom, and why there."""

from typing import Any

import pytest
from tests.samples.surroundings import policy
from tests.samples.why import (
    CARD,
    MEMORY,
    card_json,
    event,
    memory_pod,
    pod_json,
    share_node_json,
    situation,
)

from gpushare_cli.decide.why.cluster_facts import ClusterFacts
from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.explanation import PodExplanation, WhyState
from gpushare_cli.report import ExitStatus
from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.text.json_object import Json

CONTAINERS: Json = {"measurement": {"scope": "Containers"}}


def placed(pod: Json, node: str = "gpu-1", phase: str = "Running", **status: Any) -> Json:
    status = {"phase": phase, "startTime": "2026-11-21T10:01:00Z", **status}
    return {**pod, "spec": {**pod["spec"], "nodeName": node}, "status": status}


def explained(pod: Json, *share_nodes: Json, **facts: Any) -> PodExplanation:
    return explain(situation(pod, share_nodes, bound=[pod], **facts))


def test_a_running_pod_its_card_and_who_is_beside_it() -> None:
    node = share_node_json(
        "gpu-1", card_json(0), card_json(3, held={"ml/train": 4, "ml/other": 10}), **CONTAINERS
    )
    report = explained(placed(memory_pod(4)), node)
    assert report.state is WhyState.RUNNING
    assert report.exit_status is ExitStatus.GOOD
    assert report.answer == "Pod ml/train runs for 4m on gpu-1, card 3."
    (card,) = report.cards
    assert (card.index, card.units, card.card_units, card.free_units) == (3, 4, 16, 2)
    assert (card.memory_bytes, card.used_bytes) == (4 * 2**30, 2**30)
    (neighbour,) = card.neighbours
    assert (neighbour.name, neighbour.units, neighbour.used_bytes) == ("other", 10, 2**30)


def test_use_that_is_not_measured_by_container_is_unknown() -> None:
    report = explained(placed(memory_pod(4)), share_node_json("gpu-1", card_json(0, held={"ml/train": 4})))
    assert report.cards[0].used_bytes is None


def test_why_it_is_there_as_far_as_it_can_be_known() -> None:
    cards = (card_json(0, held={"ml/a": 14}), card_json(1, held={"ml/train": 4}), card_json(2))
    report = explained(placed(memory_pod(4)), share_node_json("gpu-1", *cards))
    assert report.choice == [
        "Cards of gpu-1 are chosen by strategy Binpack.",
        "By what is free now it would get the same again: first of the cards that fit equally well.",
    ]


def test_a_card_that_it_would_not_get_again() -> None:
    cards = (card_json(0, held={"ml/a": 12}), card_json(1, held={"ml/train": 4}))
    report = explained(placed(memory_pod(4)), share_node_json("gpu-1", *cards))
    assert report.choice[1:] == [
        "By what is free now it would get card 0: other pods have come or gone since."
    ]


@pytest.mark.parametrize(
    ("backend", "engine", "selected"),
    [
        pytest.param("KubeScheduler", "", "=extender |", id="an operator that knows one engine"),
        pytest.param("KubeScheduler", "Extender", "=extender |", id="beside kube-scheduler"),
        pytest.param("Dedicated", "Extender", "=scheduler -c extender |", id="in the same pod"),
        pytest.param("Dedicated", "Plugin", "", id="engine Plugin"),
        pytest.param("Volcano", "", "", id="Volcano"),
    ],
)
def test_the_log_of_an_extender_is_named_where_there_is_one(backend: str, engine: str, selected: str) -> None:
    cards = (card_json(0, held={"ml/a": 12}), card_json(1, held={"ml/train": 4}))
    cluster = ClusterFacts(policies=[policy(backend=backend, engine=engine)])
    report = explained(placed(memory_pod(4)), share_node_json("gpu-1", *cards), cluster=cluster)
    logs = report.choice[2:]
    assert [selected in line for line in logs] == ([True] if selected else [])


def test_several_cards() -> None:
    cards = [card_json(index, 1, held={"ml/train": 1}) for index in range(2)]
    pod = placed(pod_json(main={CARD: 2}))
    report = explained(pod, share_node_json("gpu-1", *cards, mode="Exclusive"))
    assert report.answer == "Pod ml/train runs for 4m on gpu-1, cards 0, 1."
    assert report.cards[0].memory_bytes is None


def test_a_pod_that_its_kubelet_has_not_admitted_counts_by_its_annotation() -> None:
    allocation = Allocation(
        node="gpu-1", uid="uid-train", at="", unit="1Gi", containers={"main": {"GPU-gpu-1-1": 4}}
    )
    pod = placed(memory_pod(4), phase="Pending")
    pod["metadata"]["annotations"] = {"gpushare.io/allocation": encode_allocation(allocation)}
    report = explained(pod, share_node_json("gpu-1", card_json(0), card_json(1)))
    assert report.state is WhyState.BOUND
    assert report.exit_status is ExitStatus.NO
    assert report.answer == (
        "Pod ml/train is bound on gpu-1, card 1, and its kubelet has not admitted it yet for 4m."
    )
    assert "Its annotation says so; the GPUShareNode does not show the pod yet." in report.choice


def test_containers_that_do_not_run_are_named_with_their_reasons() -> None:
    waiting = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
    ended = {"terminated": {"reason": "Completed"}}
    pod = placed(
        memory_pod(4),
        phase="Pending",
        initContainerStatuses=[{"name": "load", "state": ended}],
        containerStatuses=[{"name": "main", "state": waiting}, {"name": "side", "state": {"running": {}}}],
    )
    report = explained(pod, share_node_json("gpu-1", card_json(0, held={"ml/train": 4})))
    assert "has not started all of its containers yet" in report.answer
    (container,) = report.containers
    assert (container.name, container.state, container.reason) == ("main", "waiting", "ImagePullBackOff")


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        ({"phase": "Succeeded"}, "Pod ml/train has ended successfully, and holds no card any more."),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "the node was low on memory"},
            "Pod ml/train has failed, and holds no card any more: Evicted: the node was low on memory.",
        ),
    ],
)
def test_a_pod_that_has_ended(status: Json, answer: str) -> None:
    report = explained(placed(memory_pod(4), **status), share_node_json("gpu-1", card_json(0)))
    assert (report.state, report.answer, report.exit_status) == (WhyState.ENDED, answer, ExitStatus.NO)


def test_a_pod_that_its_kubelet_refused() -> None:
    pod = placed(memory_pod(4), phase="Failed", reason="UnexpectedAdmissionError", message="no units")
    (finding,) = explained(pod, share_node_json("gpu-1", card_json(0))).findings
    assert finding.code == "RefusedByKubelet"
    assert finding.advice[-1] == "kubectl delete pod -n ml train"


def test_a_container_that_the_kubelet_does_not_restart_while_the_plugin_is_away() -> None:
    message = "endpoint not found in cache for a registered resource: gpushare.io/memory"
    waiting = {"waiting": {"reason": "CreateContainerConfigError", "message": message}}
    pod = placed(memory_pod(4), containerStatuses=[{"name": "main", "state": waiting}])
    share_node = share_node_json("gpu-1", card_json(0, held={"ml/train": 4}))
    (finding,) = explained(pod, share_node).findings
    assert finding.code == "PluginAway"
    assert finding.sentence.startswith("The plugin of gpu-1 has been away for more than five minutes.")
    assert finding.advice == [
        "kubectl -n gpushare-system get pods -o wide --field-selector spec.nodeName=gpu-1"
    ]
    waiting["waiting"]["message"] = message.replace("gpushare.io/memory", "example.com/other")
    assert explained(pod, share_node).findings == [], "that plugin is not ours"


def test_a_pod_that_is_ending() -> None:
    pod = placed(memory_pod(4))
    pod["metadata"]["deletionTimestamp"] = "2026-11-21T10:04:00Z"
    report = explained(pod, share_node_json("gpu-1", card_json(0, held={"ml/train": 4})))
    assert report.answer.startswith("Pod ml/train is ending on gpu-1, card 0: what it has is free once")


def test_a_pod_that_asks_for_nothing_of_ours() -> None:
    report = explained(placed(pod_json(main={})), share_node_json("gpu-1", card_json(0)))
    assert report.answer == "Pod ml/train runs for 4m on gpu-1 without shared cards: it asks for none."
    assert report.exit_status is ExitStatus.GOOD


def test_a_node_whose_share_node_cannot_be_read() -> None:
    report = explained(placed(memory_pod(4)), unread={"GPUShareNodes": "403"})
    assert "on which card cannot be known without its GPUShareNode" in report.answer


def test_a_pod_of_which_nobody_has_a_card() -> None:
    report = explained(placed(memory_pod(4)), share_node_json("gpu-1", card_json(0)))
    assert "neither its annotation nor the GPUShareNode names a card of it" in report.answer


def test_what_a_kubelet_says_of_every_pod_is_left_out() -> None:
    usual = event("Pulled", "Container image is there")
    usual.reporting_controller, usual.type = "kubelet", "Normal"
    report = explained(placed(pod_json(main={MEMORY: 4})), events=[usual, event("Scheduled", "assigned")])
    assert [said.reason for said in report.words] == ["Scheduled"]


def test_what_a_scheduler_said_before_it_found_a_node_is_left_out() -> None:
    report = explained(placed(memory_pod(4)), events=[event("Scheduled", "assigned"), event()])
    assert [said.reason for said in report.words] == ["Scheduled"]
