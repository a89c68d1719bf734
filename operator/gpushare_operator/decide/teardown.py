"""What the deletion of a policy still waits for."""

from gpushare_operator.cluster.objects import NodeView, PolicyView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.scheduler import is_disconnected
from gpushare_operator.desired.names import plugin_name
from gpushare_operator.status.wording import listed


def awaited(snapshot: Snapshot, policy: PolicyView) -> list[str]:
    """What must be gone before ``policy`` may go, in words; nothing when all of it was taken back."""
    daemon_set = plugin_name(policy.name)
    found = {
        "GPUShareNodes": [share.name for share in snapshot.shared_by(policy.name)],
        "DaemonSet": [daemon_set] if daemon_set in snapshot.daemon_sets else [],
        "the plugin on": lingering(snapshot, policy.name),
        "labels on": [node.name for node in snapshot.labelled(policy.name)],
        "our resources in the status of": [node.name for node in leftovers(snapshot)],
    }
    words = [f"{what} {listed(names)}" for what, names in found.items() if names]
    return words if _scheduler_is_settled(snapshot) else ["the scheduler's connection", *words]


def lingering(snapshot: Snapshot, policy: str) -> list[str]:
    """Nodes where the policy's plugin still stops. A kubelet that is away cannot say that it has stopped."""
    hosts = (snapshot.nodes.get(node) for node, held in snapshot.plugin_hosts.items() if policy in held)
    return sorted(node.name for node in hosts if node and node.ready)


def leftovers(snapshot: Snapshot) -> list[NodeView]:
    """Nodes that still show our resources though no plugin offers any there."""
    return [node for node in snapshot.nodes.values() if node.offered and not snapshot.holders(node.name)]


def _scheduler_is_settled(snapshot: Snapshot) -> bool:
    return snapshot.scheduler_needed or is_disconnected(snapshot)
