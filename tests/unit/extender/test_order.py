"""The Binding that is sent, and what the pod's state says of it afterwards."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.samples.extender import ANNOTATION, annotation, holding, pod

from gpushare_core.books.allocation import Allocation, decode_allocation
from gpushare_core.placement.requests import PodRequest
from gpushare_extender.bind.binding import Order, Outcome, allocation_of, granted, judge, pod_path
from gpushare_extender.decide.requests import PodNeeds
from gpushare_extender.http.wire import BindArgs

ARGS = BindArgs(pod_name="a", pod_namespace="default", node="n1", pod_uid="uid-a")
NOW = datetime(2026, 11, 21, 10, 0, 0, 999, UTC)
ALLOCATION = allocation_of(
    holding("uid-a", c1=6),
    PodNeeds(PodRequest({"init": 5, "main": 4, "side": 2}, 6), cpu="1500m", memory="1Gi"),
    unit="1Gi",
    now=NOW,
)
ORDER = granted(ARGS, ALLOCATION, annotation=ANNOTATION)
PLAIN = Order(ARGS, {})


def on_n1(text: str) -> dict[str, Any]:
    return pod("a", node="n1", annotations={ANNOTATION: text})


def test_the_allocation_spreads_the_card_over_the_containers() -> None:
    assert (
        Allocation(
            node="n1",
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
    binding = ORDER.binding()
    assert binding["apiVersion"] == "v1"
    assert binding["kind"] == "Binding"
    assert binding["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    meta = binding["metadata"]
    assert (meta["name"], meta["namespace"], meta["uid"]) == ("a", "default", "uid-a")
    assert decode_allocation(meta["annotations"][ANNOTATION]) == ALLOCATION


def test_the_binding_of_a_pod_without_share_carries_no_annotations() -> None:
    assert PLAIN.binding()["metadata"] == {"name": "a", "namespace": "default", "uid": "uid-a"}


def test_names_cannot_escape_from_the_path() -> None:
    assert (
        pod_path("default", "../../nodes/n1?x=")
        == "/api/v1/namespaces/default/pods/..%2F..%2Fnodes%2Fn1%3Fx%3D"
    )


@pytest.mark.parametrize(
    ("order", "state", "outcome"),
    [
        pytest.param(ORDER, None, Outcome.GONE, id="no such pod"),
        pytest.param(ORDER, pod("a", uid="other"), Outcome.GONE, id="another pod of that name"),
        pytest.param(ORDER, pod("a"), Outcome.UNBOUND, id="not bound"),
        pytest.param(ORDER, pod("a", node="n2"), Outcome.ELSEWHERE, id="on another node"),
        pytest.param(ORDER, pod("a", node="n1"), Outcome.ELSEWHERE, id="on our node by somebody else"),
        pytest.param(ORDER, on_n1("x"), Outcome.ELSEWHERE, id="with an annotation not ours"),
        pytest.param(ORDER, on_n1(annotation(c1=6)), Outcome.BOUND, id="as ordered"),
        pytest.param(ORDER, on_n1(annotation(c0=6)), Outcome.BOUND, id="card corrected by the plugin since"),
        pytest.param(PLAIN, pod("a", node="n1"), Outcome.BOUND, id="without share, as ordered"),
        pytest.param(PLAIN, pod("a", node="n2"), Outcome.ELSEWHERE, id="without share, elsewhere"),
    ],
)
def test_the_pod_tells_what_became_of_the_order(
    order: Order, state: dict[str, Any] | None, outcome: Outcome
) -> None:
    assert judge(order, state) is outcome
