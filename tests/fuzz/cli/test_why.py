"""Pods and GPUShareNodes of any shape: ``why`` explains them, or says that it cannot read the pod."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.fuzzing import fuzzes
from tests.fuzz.strategies.odd_json import encoded, mutated
from tests.samples.why import (
    CARD,
    MEMORY,
    bound_pods,
    card_json,
    event,
    full_node,
    owned_pod,
    pod_json,
    share_node_json,
    situation,
)

from gpushare_cli.decide.why.explain import explain
from gpushare_cli.decide.why.situation import read_kube_pod
from gpushare_cli.gather.why.share_nodes import ObservedShareNodes
from gpushare_cli.gather.why.situation import read_pods
from gpushare_cli.output.page import OutputPage
from gpushare_cli.views.why import why_view

WRITTEN = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}]
            }
        }
    },
    "tolerations": [{"key": "a", "operator": "Exists"}],
    "nodeSelector": {"kubernetes.io/hostname": "gpu-1"},
    "priority": 5,
}
POD = pod_json(init={"load": {MEMORY: 20}}, main={MEMORY: 12, "cpu": "1"}, side={CARD: 1})
POD["spec"] |= WRITTEN
POD["status"] = {
    "phase": "Pending",
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "full"}],
}
PLACED = {**POD, "spec": {**POD["spec"], "nodeName": "gpu-1"}}
PLACED["status"] = {
    "phase": "Running",
    "startTime": "2026-11-21T10:00:00Z",
    "initContainerStatuses": [{"name": "load", "state": {"terminated": {"reason": "Completed"}}}],
    "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": "a", "message": "b"}}}],
}
ENDED = {**PLACED, "status": {"phase": "Failed", "reason": "Evicted", "message": "low on memory"}}
NODES = [
    full_node("gpu-1", 5),
    share_node_json("gpu-2", card_json(0, cordoned=True), card_json(1, health="Unhealthy"), mode="Mixed"),
]


@fuzzes(read_kube_pod, explain, few=100)
@given(st.sampled_from([POD, PLACED, ENDED]).flatmap(mutated), st.sampled_from(NODES).flatmap(mutated))
def test_a_pod_is_explained_or_cannot_be_read(pod: Any, node: Any) -> None:
    try:
        facts = situation(
            pod,
            [NODES[0], node] if has_name(node) else NODES,
            neighbours={"gpu-1": bound_pods(owned_pod("gpu-1-last"))},
            events=[event()],
        )
    except msgspec.ValidationError:
        return
    assert [*why_view(explain(facts), OutputPage(width=80))]


def has_name(node: Any) -> bool:
    """Every object of the API server has a name."""
    try:
        return isinstance(node["metadata"]["name"], str)
    except (TypeError, KeyError):
        return False


@fuzzes(ObservedShareNodes.__getitem__)
@given(encoded(mutated(NODES[0])))
def test_a_share_node_of_any_shape_has_a_name(content: bytes) -> None:
    assert isinstance(ObservedShareNodes({"gpu-1": msgspec.Raw(content)})["gpu-1"].name, str)


@fuzzes(read_pods)
@given(encoded(mutated(owned_pod("a"))))
def test_pods_that_cannot_be_read_are_left_out(content: bytes) -> None:
    assert len(read_pods([msgspec.Raw(content)])) <= 1
