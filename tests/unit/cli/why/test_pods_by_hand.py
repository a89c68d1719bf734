"""Pods that nobody places now, that the API server refuses, and what people write into them by hand."""

from typing import Any

import pytest
from tests.samples.surroundings import asked, found, said
from tests.samples.why import memory_pod

from gpushare_cli.decide.why.causes.admission import node_by_hand, refused
from gpushare_cli.decide.why.causes.containers import (
    handwritten_annotations,
    handwritten_variables,
    privileged,
)
from gpushare_cli.decide.why.causes.pod_state import being_deleted, gated
from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.explanation import WhyState
from gpushare_core.text.json_object import Json


def setting(name: str, value: str) -> Json:
    pod = memory_pod(4)
    pod["spec"]["containers"][0]["env"] = [{"name": name, "value": value}]
    return pod


def with_metadata(**metadata: Any) -> Json:
    pod = memory_pod(4)
    return {**pod, "metadata": {**pod["metadata"], **metadata}}


def test_a_gate_keeps_every_scheduler_away() -> None:
    finding = found(gated, asked(memory_pod(4, schedulingGates=[{"name": "example.com/approval"}])))
    assert finding.sentence == (
        "The pod has the scheduling gate example.com/approval: until it is gone no scheduler looks at it."
    )
    assert finding.is_decisive


def test_the_gate_of_kueue_goes_when_it_admits_the_workload() -> None:
    finding = found(gated, asked(memory_pod(4, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])))
    assert finding.advice == ["kubectl get workloads -A"]


def test_a_pod_that_is_being_deleted_is_placed_no_more() -> None:
    pod = with_metadata(deletionTimestamp="2026-11-21T10:00:00Z", finalizers=["example.com/save"])
    assert found(being_deleted, asked(pod)).sentence == (
        "The pod is being deleted: it is no longer placed, and stays until finalizer example.com/save is"
        " removed."
    )


def test_a_refusal_is_quoted_without_the_names_of_our_admission_policies() -> None:
    refusal = (
        "pods \"a\" is invalid: ValidatingAdmissionPolicy 'x' with binding 'x' denied request: take it out"
    )
    assert said(refused, asked(refusal=refusal)) == ["The API server refuses the pod: take it out."]


@pytest.mark.parametrize(
    ("refusal", "advice"),
    [
        (
            'strict decoding error: unknown field "spec.containers[0].limits"',
            "kubectl explain pod.spec.containers --recursive",
        ),
        ("pods is forbidden: exceeded quota: cards", "kubectl describe quota -n ml"),
        ("no PriorityClass with name high was found", "kubectl get priorityclasses"),
        ('violates PodSecurity "restricted:latest"', "kubectl get namespace ml --show-labels"),
    ],
)
def test_a_refusal_has_a_command_that_says_more(refusal: str, advice: str) -> None:
    assert found(refused, asked(refusal=refusal)).advice == [advice]


def test_of_a_pod_that_is_refused_no_cards_are_spoken_of() -> None:
    report = explain(asked(refusal="no PriorityClass with name high was found"))
    assert [finding.code for finding in report.findings] == ["Refused"]
    assert report.state is WhyState.WAITING


def test_a_node_that_is_written_by_hand_is_not_waited_for() -> None:
    finding = found(node_by_hand, asked(written_node="gpu-1"))
    assert finding.sentence.startswith("The pod has spec.nodeName: gpu-1, which bypasses the scheduler")
    assert finding.advice == [
        "Write nodeSelector: {kubernetes.io/hostname: gpu-1} instead: then it waits for room."
    ]


@pytest.mark.parametrize("name", ["NVIDIA_VISIBLE_DEVICES", "AMD_VISIBLE_DEVICES", "GPUSHARE_CARD"])
def test_who_names_the_cards_of_a_container_is_refused(name: str) -> None:
    finding = found(handwritten_variables, asked(setting(name, "all")))
    assert f"Container main sets {name} itself" in finding.sentence
    assert finding.is_decisive


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NVIDIA_VISIBLE_DEVICES", "none"),
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("NVIDIA_DRIVER_CAPABILITIES", "all"),
    ],
)
def test_variables_that_do_no_harm_are_left_alone(name: str, value: str) -> None:
    assert said(handwritten_variables, asked(setting(name, value))) == []


def test_a_program_that_chooses_another_card_than_the_first_may_find_none() -> None:
    finding = found(handwritten_variables, asked(setting("CUDA_VISIBLE_DEVICES", "3")))
    assert finding.sentence == (
        "Container main sets CUDA_VISIBLE_DEVICES=3. It sees only cards that it is given, numbered from 0:"
        " its program"
        " may find none."
    )
    assert not finding.is_decisive


def test_a_privileged_container_sees_all_cards() -> None:
    pod = memory_pod(4)
    pod["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    assert said(privileged, asked(pod)) == [
        "Container main is privileged: it sees all cards of its node, others' as well."
    ]


def test_an_allocation_written_by_hand_counts_for_nothing() -> None:
    finding = found(
        handwritten_annotations, asked(with_metadata(annotations={"gpushare.io/allocation": "{}"}))
    )
    assert finding.sentence == (
        "The pod has the annotation gpushare.io/allocation. It has no effect: gpushare chooses cards."
    )


def test_a_pod_in_a_cluster_where_all_is_well_fits() -> None:
    report = explain(asked())
    assert [finding.code for finding in report.findings] == ["CardsFit"]
    assert report.state is WhyState.FITS


def test_a_pod_that_is_half_written_is_left_to_the_api_server() -> None:
    pod = memory_pod(4, nodeSelector=["gpu-1"], tolerations="all")
    assert explain(asked(pod, refusal="spec.nodeSelector: Invalid value")).state is WhyState.WAITING
