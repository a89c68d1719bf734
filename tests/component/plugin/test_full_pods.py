"""A pod without room for our annotation: nothing is tried in vain, people learn of it, and nobody waits."""

from collections.abc import Sequence

import pytest
from tests.fakes.api_server import EVENTS, PODS
from tests.fakes.kubelet import AdmissionError
from tests.fakes.plugin_node import Node
from tests.samples.plugin import container, pod_json

from gpushare_core.dialects.annotation_room import MAX_BYTES
from gpushare_core.kube.paths import pod_path
from gpushare_core.text.json_object import Json


def bound_by_somebody_else(name: str, *, room: int) -> Json:
    """Without an allocation, and with so many bytes left for one."""
    pod = pod_json(name, container(units=4))
    pod["metadata"]["annotations"] = {"filler": "x" * (MAX_BYTES - len("filler") - room)}
    return pod


def full_pod_events(node: Node) -> Sequence[Json]:
    return [event for event in node.api.objects[EVENTS].values() if event["reason"] == "AnnotationsFull"]


def writes(node: Node, name: str) -> int:
    return len(node.api.requests("PATCH", pod_path("default", name)))


async def test_a_full_pod_is_named_and_holds_nobody_up(node: Node) -> None:
    await node.run_pod(bound_by_somebody_else("full", room=10))
    await node.run_pod(bound_by_somebody_else("other", room=5000))
    await node.until("the other's", lambda: node.allocation("other") is not None)
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "RepairPending"))
    assert f"default/full (the pod has {MAX_BYTES - 10} bytes of annotations" in node.message("LedgerInSync")
    assert "remove annotations from the pod" in node.message("LedgerInSync")
    await node.until("the Event", lambda: bool(full_pod_events(node)))
    (event,) = full_pod_events(node)
    assert event["regarding"]["name"] == "full"
    assert "remove annotations from the pod" in event["note"]
    assert writes(node, "full") == 0
    await node.until("both hold their cards", lambda: node.on_cards().keys() == {"full", "other"})


async def test_a_restarted_plugin_tells_it_once(node: Node) -> None:
    await node.run_pod(bound_by_somebody_else("full", room=10))
    await node.until("the Event", lambda: bool(full_pod_events(node)))
    await node.restart_plugin()
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "RepairPending"))
    assert len(full_pod_events(node)) == 1


async def test_once_there_is_room_the_annotation_is_written(node: Node) -> None:
    await node.run_pod(bound_by_somebody_else("full", room=10))
    await node.until("the word", lambda: node.condition("LedgerInSync") == ("False", "RepairPending"))
    pod = node.api.pod("full")
    node.api.put(PODS, {**pod, "metadata": {**pod["metadata"], "annotations": {}}})
    await node.until("the annotation", lambda: node.allocation("full") is not None)
    await node.until("the books", lambda: node.condition("LedgerInSync") == ("True", "InSync"))


async def test_a_pod_of_more_units_than_its_kubelet_can_report_is_refused(idle_node: Node) -> None:
    """Also where somebody else has bound it: it would be Pending for ever, and its card taken."""
    devices = {"source": "Simulated", "simulated": [{"count": 1, "memory": "80Gi"}]}
    idle_node.share("1Mi", devices=devices)
    await idle_node.start_plugin()
    await idle_node.until_registered()
    with pytest.raises(AdmissionError, match="asks for 65537 units, but a pod may have at most 65536"):
        await idle_node.run_pod(pod_json("a", container(units=65_537)))
    await idle_node.run_pod(pod_json("b", container(units=65_536)))
