"""What the first line says of a pod, and that nothing below it says something else."""

from dataclasses import replace
from typing import Any

import pytest
from tests.samples.surroundings import asked, node, quota
from tests.samples.why import (
    MEMORY,
    card_json,
    event,
    full_node,
    memory_pod,
    pod_json,
    share_node_json,
    situation,
)

from gpushare_cli.decide.why.cluster_facts import ClusterFacts
from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.explanation import PodExplanation
from gpushare_cli.decide.why.finding import Remedy
from gpushare_core.text.json_object import Json


def explained(pod: Json, **facts: Any) -> PodExplanation:
    return explain(asked(pod, **facts))


def refused(pod: Json, refusal: str) -> PodExplanation:
    facts = situation(pod, [full_node("gpu-1", 9)], exists=False)
    return explain(replace(facts, cluster=ClusterFacts(refusal=refusal)))


def another_node(report: PodExplanation) -> Remedy:
    return next(remedy for remedy in report.remedies if remedy.code == "AnotherNode")


def test_a_card_helps_nobody_who_asks_for_a_name_that_no_node_serves() -> None:
    assert explained(pod_json(main={"aliyun.com/gpu-mem": 4})).remedies == []


def test_cards_do_not_help_a_pod_that_a_quota_keeps_out() -> None:
    crowded = [full_node("gpu-1", 9)]
    assert explained(memory_pod(12), share_nodes=crowded).remedies
    assert explained(memory_pod(12), share_nodes=crowded, quotas=[quota("8", "8")]).remedies == []


def test_one_more_node_needs_the_labels_that_the_pod_asks_for() -> None:
    pod = memory_pod(4, nodeSelector={"zone": "eu-1"})
    remedy = another_node(explained(pod, nodes=[node()]))
    assert remedy.helps
    assert remedy.sentence.endswith(", but with zone=eu-1.")


def test_one_more_node_must_not_have_the_taint_that_keeps_the_pod_off() -> None:
    tainted = node(taints=[{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}])
    sentence = another_node(explained(memory_pod(4), nodes=[tainted])).sentence
    assert sentence.endswith(", but without the taint dedicated=ml:NoSchedule.")


def test_no_other_node_helps_a_pod_that_asks_for_one_by_its_name() -> None:
    pod = memory_pod(12, nodeSelector={"kubernetes.io/hostname": "gpu-1"})
    there = node(labels={"kubernetes.io/hostname": "gpu-1"})
    remedy = another_node(explained(pod, share_nodes=[full_node("gpu-1", 9)], nodes=[there]))
    assert not remedy.helps
    assert remedy.sentence == "One more node, unless its name is gpu-1: the pod asks for that one."


@pytest.mark.parametrize(
    ("closed", "said"),
    [
        ({"cordoned": True}, "Card 1 of gpu-1 has room for it, and is cordoned (fan is loud)."),
        (
            {"health": "Unhealthy", "healthReason": "XID 79"},
            "Card 1 of gpu-1 has room for it, and is sick (XID 79).",
        ),
    ],
)
def test_a_card_that_would_do_and_is_closed_is_the_reason(closed: Json, said: str) -> None:
    share_node = share_node_json("gpu-1", card_json(0, held={"ml/a": 9}), card_json(1, **closed))
    share_node["metadata"]["annotations"] = {"gpushare.io/cordon-reason": "GPU-gpu-1-1: fan is loud"}
    report = explained(memory_pod(12), share_nodes=[share_node])
    assert report.findings[0].sentence == said
    assert report.answer.endswith(f": {said[0].lower()}{said[1:]}")


def test_a_pod_that_the_api_server_refuses_does_not_wait() -> None:
    report = refused(memory_pod(4), 'pods "train" is forbidden: no PriorityClass with name hihg was found')
    assert report.answer == (
        'Pod ml/train is refused by the API server: pods "train" is forbidden: no PriorityClass with name'
        " hihg was found."
    )


def test_of_a_refusal_the_plain_reason_comes_first() -> None:
    pod = pod_json(main={})
    pod["spec"]["containers"][0]["resources"] = {"requests": {MEMORY: "4"}}
    report = refused(pod, 'Pod "train" is invalid: spec.containers[0].resources.limits: Required value')
    assert report.answer.startswith(
        f"Pod ml/train is refused by the API server: container main has {MEMORY} in its requests"
    )
    assert [finding.code for finding in report.findings] == ["NoLimit", "Refused"]


def test_a_manifest_that_asks_for_no_cards_does_not_wait_for_them() -> None:
    report = explain(situation(pod_json(main={"cpu": 1}), [full_node()], exists=False))
    assert report.answer == "Pod ml/train asks for no shared cards: gpushare has no part in where it runs."


def test_less_than_nothing_is_no_amount() -> None:
    report = refused(memory_pod(-3), "must be greater than or equal to 0")
    assert report.findings[0].sentence == (
        f"Container main asks for -3 of {MEMORY}, and an amount is not below 0."
    )
    assert report.asks == []


def test_no_number_is_advised_that_no_card_has() -> None:
    report = explained(pod_json(main={"volcano.sh/gpu-memory": 4000}))
    assert report.findings[0].advice[0] == (
        f"Instead of volcano.sh/gpu-memory write {MEMORY}: N, with N for how many units of 1Gi it needs,"
        " 16 at most."
    )


def test_a_pod_that_lacks_something_else_is_not_said_to_be_tried_again_soon() -> None:
    pod = memory_pod(4, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    advice = [line for finding in explained(pod, exists=True).findings for line in finding.advice]
    assert not any("tries it again by itself" in line for line in advice)


def test_of_each_reason_the_latest_event_is_enough() -> None:
    report = explain(
        situation(memory_pod(12), [full_node()], events=[event(note="2 nodes"), event(note="1 node")])
    )
    assert [said.message for said in report.words] == ["2 nodes"]
