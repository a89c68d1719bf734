"""The Binding that is sent, and what the pod's state says of it afterwards."""

from datetime import UTC, datetime

import msgspec
import pytest
from tests.samples.extender import ANNOTATION, annotation, holder, pod_json, reference, share_node

from gpushare_core.allocation_annotation import Allocation, decode_allocation
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.text.json_object import Json
from gpushare_extender.bind.binding import (
    Binding,
    BindingOutcome,
    allocation_of,
    binding_outcome,
    share_binding,
)
from gpushare_extender.decide.pod_state import PodState

NOW = datetime(2026, 11, 21, 10, 0, 0, 999, UTC)
ALLOCATION = allocation_of(
    holder("uid-a", c1=6),
    PodRequest(
        (ResourceRequest("gpushare.io/memory", ResourceClass.MEMORY, 6, {"init": 5, "main": 4, "side": 2}),),
        cpu="1500m",
        memory="1Gi",
    ),
    share_node("n1"),
    now=NOW,
)
SHARE = share_binding(reference("a"), ALLOCATION, share_node("n1"), now=NOW)
PLAIN = Binding(reference("a"), "n1", {})
Outcome = BindingOutcome


def on_n1(text: str) -> Json:
    return pod_json("a", node="n1", annotations={ANNOTATION: text})


def test_the_allocation_spreads_the_card_over_the_containers() -> None:
    assert (
        Allocation(
            node="n1",
            uid="uid-a",
            at="2026-11-21T10:00:00Z",
            unit="1Gi",
            containers={"init": {"n1-1": 5}, "main": {"n1-1": 4}, "side": {"n1-1": 2}},
            cards={"n1-1": 6},
            cpu="1500m",
            memory="1Gi",
        )
        == ALLOCATION
    )


def test_the_binding_carries_annotation_and_uid() -> None:
    binding = SHARE.to_json()
    assert binding["apiVersion"] == "v1"
    assert binding["kind"] == "Binding"
    assert binding["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    meta = binding["metadata"]
    assert (meta["name"], meta["namespace"], meta["uid"]) == ("a", "default", "uid-a")
    assert decode_allocation(meta["annotations"][ANNOTATION], uid="uid-a") == ALLOCATION


def test_the_binding_of_a_pod_without_share_carries_no_annotations() -> None:
    assert PLAIN.to_json()["metadata"] == {"name": "a", "namespace": "default", "uid": "uid-a"}


@pytest.mark.parametrize(
    ("binding", "pod", "outcome"),
    [
        pytest.param(SHARE, None, Outcome.GONE, id="no such pod"),
        pytest.param(SHARE, pod_json("a", uid="other"), Outcome.GONE, id="another pod of that name"),
        pytest.param(SHARE, pod_json("a"), Outcome.UNBOUND, id="not bound"),
        pytest.param(SHARE, pod_json("a", node="n2"), Outcome.ELSEWHERE, id="on another node"),
        pytest.param(SHARE, pod_json("a", node="n1"), Outcome.ELSEWHERE, id="on our node by somebody else"),
        pytest.param(SHARE, on_n1("x"), Outcome.ELSEWHERE, id="with an annotation not ours"),
        pytest.param(SHARE, on_n1(annotation("b", c1=6)), Outcome.ELSEWHERE, id="with another pod's"),
        pytest.param(SHARE, on_n1(annotation(c1=6)), Outcome.BOUND, id="as sent"),
        pytest.param(SHARE, on_n1(annotation(c0=6)), Outcome.BOUND, id="card corrected by the plugin since"),
        pytest.param(PLAIN, pod_json("a", node="n1"), Outcome.BOUND, id="without share, as sent"),
        pytest.param(PLAIN, pod_json("a", node="n2"), Outcome.ELSEWHERE, id="without share, elsewhere"),
    ],
)
def test_the_pod_shows_what_became_of_the_binding(
    binding: Binding, pod: Json | None, outcome: BindingOutcome
) -> None:
    state = None if pod is None else msgspec.convert(pod, PodState)
    assert binding_outcome(binding, state) is outcome
