"""The extender on one scheduler host: the mark that brings it there, and why it does not serve."""

from collections.abc import Iterable

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_operator.actions import LabelNode
from gpushare_operator.cluster.objects import NodeObject, PodObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies.scheduler_settings import scheduler_settings

AWAY = "the node is not Ready"
ADDRESS_IN_USE = "address already in use"
OTHER_PORT = "choose a free port as scheduler.extenderPort"


def mark(node: NodeObject, value: str | None) -> LabelNode:
    """Returns the action that marks ``node``, or takes the mark off if ``value`` is None."""
    return LabelNode(node.name, node.uid, {SCHEDULER_LABEL: value})


def extender_ready(snapshot: ClusterSnapshot, node: NodeObject, port: int) -> bool:
    pod = extender_pod(snapshot, node, port)
    return pod is not None and pod.ready


def extender_pod(snapshot: ClusterSnapshot, node: NodeObject, port: int) -> PodObject | None:
    pod = snapshot.extender_pods.get(node.name)
    return pod if pod and port in pod.extender_ports else None


def unready_extenders(snapshot: ClusterSnapshot, nodes: Iterable[NodeObject]) -> dict[str, str]:
    """Returns node name -> why no extender serves there at the desired port."""
    port = scheduler_settings(snapshot).port
    unready = (node for node in nodes if not extender_ready(snapshot, node, port))
    return {node.name: why_no_extender(snapshot, node) for node in unready}


def why_no_extender(snapshot: ClusterSnapshot, node: NodeObject) -> str:
    pod = snapshot.extender_pods.get(node.name)
    if not node.ready:
        return AWAY
    if pod is None:
        return "the extender is being started"
    if pod.ready:
        return f"the extender ({pod.name}) does not listen on the new port yet"
    if pod.last_words:
        hint = f"; {OTHER_PORT}" if ADDRESS_IN_USE in pod.last_words.lower() else ""
        return f"the extender ({pod.name}) does not start: {pod.last_words}{hint}"
    return pod.waiting or f"the extender ({pod.name}) is not ready yet"
