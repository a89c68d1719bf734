"""Which nodes are hosts of a kube-scheduler that was or is to be edited, restored, or let go."""

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_operator.backends.extender_workload.daemon_set import is_external
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.backends.kube_scheduler.job_history import last_job
from gpushare_operator.cluster.labels import EXTERNAL_MARK
from gpushare_operator.cluster.objects import DaemonSetObject, JobObject, NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME


def hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the control planes, and the marked nodes: their schedulers were edited and ask the extender,
    whatever became of the control-plane label."""
    former = (node for node in marked_nodes(snapshot) if not node.deleting)
    by_name = {node.name: node for node in (*snapshot.control_planes, *former)}
    return [by_name[name] for name in sorted(by_name)]


def kube_scheduler_extender(snapshot: ClusterSnapshot) -> DaemonSetObject | None:
    """Returns the extender's DaemonSet, if it is for schedulers that hostctl connects."""
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    return None if is_external(extender) else extender


def marked_nodes(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the nodes whose label says that they may have been edited; it outlives all other objects."""
    return [node for node in snapshot.traits.hosts if is_marked(node)]


def is_marked(node: NodeObject) -> bool:
    return node.labels.get(SCHEDULER_LABEL, EXTERNAL_MARK) != EXTERNAL_MARK


def settled_marks(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the marked nodes that were not let go. On one that was let go the mark stays: when the host
    comes back it is restored like any other, with or without a policy."""
    lost = let_go(snapshot)
    return [node for node in marked_nodes(snapshot) if node.name not in lost]


def nodes_to_restore(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns every node with a Job or a mark, and every control plane while the extender is there, without
    the nodes that are gone or that a person has let go.

    Somebody may have deleted the Jobs, or the whole namespace. A scheduler that asks an extender that is gone
    places no pod that shares cards; restoring one that was never edited does nothing.
    """
    extender = kube_scheduler_extender(snapshot)
    control_planes = snapshot.control_planes if extender and not extender.deleting else []
    suspects = (*marked_nodes(snapshot), *control_planes)
    names = {*snapshot.jobs_by_node, *(node.name for node in suspects)} - let_go(snapshot)
    nodes = (snapshot.nodes.get(name) for name in sorted(names))
    return [node for node in nodes if node]


def hosts_let_go(snapshot: ClusterSnapshot) -> list[str]:
    """Returns the hosts that stay edited: people have let them go, or their Node is gone."""
    edited = {name for name in snapshot.jobs_by_node if not _is_restored(snapshot, name)}
    marked = {node.name for node in marked_nodes(snapshot)}
    gone = edited - set(snapshot.nodes)
    return sorted(gone | (edited | marked) & let_go(snapshot))


def unlabelled_hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns edited nodes without any label that says so: somebody has made their Node anew."""
    names = {name for name in snapshot.jobs_by_node if not _is_restored(snapshot, name)}
    names -= {node.name for node in hosts(snapshot)} | let_go(snapshot)
    return [snapshot.nodes[name] for name in sorted(names) if name in snapshot.nodes]


def let_go(snapshot: ClusterSnapshot) -> set[str]:
    """Returns the hosts that count as lost:

    1. without any policy: marked nodes that are not Ready;
    2. hosts that people have let go and that are gone or not Ready;
    3. hosts that people have let go and that could not be restored. While a host is Ready the annotation may
       be an old one, so restoring it is tried once.
    """
    if not snapshot.policies:
        return {node.name for node in marked_nodes(snapshot) if not node.ready}
    ready = {name for name in snapshot.let_go if (node := snapshot.nodes.get(name)) and node.ready}
    failed = {name for name in ready if (job := _last_restore(snapshot, name)) and job.failed}
    return set(snapshot.let_go) - ready | failed


def _is_restored(snapshot: ClusterSnapshot, name: str) -> bool:
    job = _last_restore(snapshot, name)
    return job is not None and job.complete


def _last_restore(snapshot: ClusterSnapshot, name: str) -> JobObject | None:
    """Returns the last run of hostctl on the host of that name, if that was to restore it."""
    job = last_job(snapshot, name)
    return job if job and job.command == HostctlCommand.RESTORE else None
