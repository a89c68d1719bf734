"""Which nodes are hosts of a kube-scheduler that was or is to be edited, restored, or let go."""

from collections.abc import Sequence

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_operator.backends.extender.daemon_set import is_external
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.backends.kube_scheduler.job_history import last_job
from gpushare_operator.cluster.labels import EXTERNAL_MARK
from gpushare_operator.cluster.objects import DaemonSetObject, NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME


def hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the control planes, and what was one when it was edited: its scheduler asks the extender,
    whatever became of the label."""
    former = (node for node in marked_nodes(snapshot) if not node.deleting)
    by_name = {node.name: node for node in (*snapshot.control_planes, *former)}
    return [by_name[name] for name in sorted(by_name)]


def kube_scheduler_extender(snapshot: ClusterSnapshot) -> DaemonSetObject | None:
    """Returns the extender's DaemonSet, if it is there for schedulers that hostctl connects."""
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    return None if is_external(extender) else extender


def marked_nodes(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns nodes that say themselves that they may have been edited: nothing else has to survive."""
    return [node for node in snapshot.traits.hosts if is_marked(node)]


def is_marked(node: NodeObject) -> bool:
    return node.labels.get(SCHEDULER_LABEL, EXTERNAL_MARK) != EXTERNAL_MARK


def settled_marks(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns marked nodes whose hosts are restored. On one that was let go the mark stays: when the host
    comes back it is restored like any other, whether there is a policy by then or not."""
    lost = let_go(snapshot)
    return [node for node in marked_nodes(snapshot) if node.name not in lost]


def nodes_to_restore(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns every node with a Job or a mark, and every control plane while the extender stands.

    Somebody may have deleted the Jobs, or the whole namespace: a scheduler that asks an extender that is gone
    would place no pod that shares cards, and restoring one that was never edited does nothing. A node that is
    gone needs none, nor one that a person has let go.
    """
    suspects = (*marked_nodes(snapshot), *_nodes_under_extender(snapshot))
    names = {*snapshot.jobs_by_node, *(node.name for node in suspects)} - let_go(snapshot)
    nodes = (snapshot.nodes.get(name) for name in sorted(names))
    return [node for node in nodes if node]


def _nodes_under_extender(snapshot: ClusterSnapshot) -> Sequence[NodeObject]:
    extender = kube_scheduler_extender(snapshot)
    return [] if extender is None or extender.deleting else snapshot.control_planes


def hosts_let_go(snapshot: ClusterSnapshot) -> list[str]:
    """Returns the nodes that stay edited when nothing is left to restore: people have let them go, or their
    Node is gone."""
    edited = {name for name in snapshot.jobs_by_node if not _is_restored(snapshot, name)}
    marked = {node.name for node in marked_nodes(snapshot)}
    gone = edited - set(snapshot.nodes)
    return sorted(gone | (edited | marked) & let_go(snapshot))


def unlabelled_hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns nodes that were edited, and carry no label any more that says so: somebody made their Node
    anew."""
    names = {name for name in snapshot.jobs_by_node if not _is_restored(snapshot, name)}
    names -= {node.name for node in hosts(snapshot)} | let_go(snapshot)
    return [snapshot.nodes[name] for name in sorted(names) if name in snapshot.nodes]


def let_go(snapshot: ClusterSnapshot) -> set[str]:
    """Returns the hosts that count as lost because people said so. One whose kubelet is there is not lost:
    the annotation may be from an earlier time. It is restored, but waited for once only. Once no policy is
    left to say so, those that are away stay lost until they are back."""
    if not snapshot.policies:
        return {node.name for node in marked_nodes(snapshot) if not node.ready}
    return {name for name in snapshot.let_go if _is_away(snapshot, name) or _was_not_restored(snapshot, name)}


def _is_away(snapshot: ClusterSnapshot, name: str) -> bool:
    node = snapshot.nodes.get(name)
    return node is None or not node.ready


def _was_not_restored(snapshot: ClusterSnapshot, name: str) -> bool:
    job = last_job(snapshot, name)
    return job is not None and job.failed and job.command == HostctlCommand.RESTORE


def _is_restored(snapshot: ClusterSnapshot, name: str) -> bool:
    job = last_job(snapshot, name)
    return job is not None and job.complete and job.command == HostctlCommand.RESTORE
