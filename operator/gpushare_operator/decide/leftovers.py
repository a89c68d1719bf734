"""What policies leave behind: how each kind of it is found, and what takes it away.

In which order that happens stands in ``teardown``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.names import DEDICATED_SCHEDULER, FINALIZER
from gpushare_operator.cluster.nodes.node_index import NOTHING, Entry, NodeIndex
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import POLICY_LABELS, NodeObject, ShareNodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.actions import (
    Action,
    CapacityLeft,
    ClearCapacity,
    DeleteDaemonSet,
    DeleteDeployment,
    DeleteJob,
    DeleteShareNode,
    LabelNode,
    RemoveStartupTaint,
    SetFinalizers,
)
from gpushare_operator.decide.external import external_hosts
from gpushare_operator.decide.hostctl_history import earliest_retry, is_done
from gpushare_operator.decide.nodes.dialect_names import (
    forgotten_names,
    lasting_labels,
    own_names,
    recorded_dialect,
    shows_counts,
)
from gpushare_operator.decide.nodes.startup_taints import remove_unclaimed_taints, unclaimed_tainted_nodes
from gpushare_operator.decide.scheduler import (
    create_job,
    delete_superseded_jobs,
    kube_scheduler_extender,
    mark,
    marked_nodes,
    next_restore,
    nodes_to_restore,
    restores,
    settled_marks,
    withdraw_runs,
)
from gpushare_operator.decide.volcano import edited_location, plan_restore
from gpushare_operator.desired.daemon_sets import is_external
from gpushare_operator.desired.hostctl_job import HostctlCommand
from gpushare_operator.desired.names import EXTENDER_NAME, Installation, plugin_name

EVERY_POLICY = ""
"""In place of a policy's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """What is to be taken back: the whole of ``policy``, or what all policies shared."""

    snapshot: ClusterSnapshot
    policy: str = EVERY_POLICY
    installation: Installation
    now: datetime


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something that is still there, in words for people."""

    description: str
    names: tuple[str, ...] = ()


SCHEDULER_CONNECTION = Leftover("the scheduler's connection")


# GPUShareNodes.


def share_nodes(snapshot: ClusterSnapshot, policy: str) -> list[Leftover]:
    return _leftover("GPUShareNodes", (share.name for share in _share_nodes(snapshot, policy)))


def delete_share_nodes(teardown: Teardown) -> Iterator[DeleteShareNode]:
    for share in _share_nodes(teardown.snapshot, teardown.policy):
        if not share.deleting:
            yield DeleteShareNode(share.name, share.uid)


def _share_nodes(snapshot: ClusterSnapshot, policy: str) -> list[ShareNodeObject]:
    if policy == EVERY_POLICY:
        return [share for share in snapshot.share_nodes.values() if share.policy]
    return snapshot.share_nodes_of(policy)


# The scheduler's connection: edited schedulers, the extender, marks, Jobs.


def edited_schedulers(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    nodes = nodes_to_restore(snapshot)
    return _connection_if(any(not _is_restored(snapshot, node) for node in nodes))


def restore_schedulers(teardown: Teardown) -> Iterator[Action]:
    if edited_schedulers(teardown.snapshot, teardown.policy):
        histories = restores(teardown.snapshot, teardown.installation, teardown.now)
        yield from (create_job(history) for history in next_restore(teardown.snapshot, histories))
        # With the mark the host's extender goes, whose keys are gone already.
        done = (node for node in marked_nodes(teardown.snapshot) if _is_restored(teardown.snapshot, node))
        yield from (mark(node, None) for node in done)
        yield from withdraw_runs(teardown.snapshot)
        yield from delete_superseded_jobs(teardown.snapshot)


def _is_restored(snapshot: ClusterSnapshot, node: NodeObject) -> bool:
    return is_done(snapshot, node, HostctlCommand.RESTORE)


def next_attempt(teardown: Teardown) -> float | None:
    """Returns the seconds until a scheduler that could not be restored is to be tried again."""
    return earliest_retry(restores(teardown.snapshot, teardown.installation, teardown.now))


def extender(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(kube_scheduler_extender(snapshot))


def delete_extender(teardown: Teardown) -> Iterator[DeleteDaemonSet]:
    if kube_scheduler_extender(teardown.snapshot):
        yield from _delete_daemon_set(teardown.snapshot, EXTENDER_NAME)


def stopping_extenders(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    if is_external(snapshot.daemon_sets.get(EXTENDER_NAME)):
        return []
    return _connection_if(_ready_nodes(snapshot, snapshot.extender_pods))


def marks(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(settled_marks(snapshot))


def remove_marks(teardown: Teardown) -> Iterator[LabelNode]:
    yield from (mark(node, None) for node in settled_marks(teardown.snapshot))


def jobs(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(snapshot.jobs)


def delete_jobs(teardown: Teardown) -> Iterator[DeleteJob]:
    present = teardown.snapshot.jobs.values()
    yield from (DeleteJob(job.name, job.uid) for job in present if not job.deleting)


def _connection_if(present: object) -> list[Leftover]:
    return [SCHEDULER_CONNECTION] if present else []


# The extender for kube-schedulers that people connect by themselves. Its marks go last: they say that its
# pods may still run.


def external_extender(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(is_external(snapshot.daemon_sets.get(EXTENDER_NAME)))


def delete_external_extender(teardown: Teardown) -> Iterator[DeleteDaemonSet]:
    if is_external(teardown.snapshot.daemon_sets.get(EXTENDER_NAME)):
        yield from _delete_daemon_set(teardown.snapshot, EXTENDER_NAME)


def stopping_external_extenders(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    names = [node.name for node in external_hosts(snapshot) if node.name in snapshot.extender_pods]
    return _connection_if(_ready_nodes(snapshot, names))


def external_marks(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(external_hosts(snapshot))


def remove_external_marks(teardown: Teardown) -> Iterator[LabelNode]:
    yield from (mark(node, None) for node in external_hosts(teardown.snapshot))


# A kube-scheduler of our own.


def dedicated_scheduler(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(DEDICATED_SCHEDULER in snapshot.deployments)


def delete_dedicated_scheduler(teardown: Teardown) -> Iterator[DeleteDeployment]:
    present = teardown.snapshot.deployments.get(DEDICATED_SCHEDULER)
    if present and not present.deleting:
        yield DeleteDeployment(present.name, present.uid)


def stopping_dedicated_schedulers(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(_ready_nodes(snapshot, (pod.node for pod in snapshot.dedicated_pods)))


# The configuration of Volcano's scheduler.


def edited_volcano(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _connection_if(edited_location(snapshot))


def restore_volcano(teardown: Teardown) -> Iterator[Action]:
    yield from plan_restore(teardown.snapshot)


# Plugins and the labels that select their nodes.


def plugins_and_labels(snapshot: ClusterSnapshot, policy: str) -> list[Leftover]:
    daemon_set = plugin_name(policy)
    running_on = [state.name for state in snapshot.states.values() if _runs_plugin(state, policy)]
    return [
        *_leftover("DaemonSet", [daemon_set] if daemon_set in snapshot.daemon_sets else []),
        *_leftover("the plugin on", _ready_nodes(snapshot, running_on)),
        *_leftover("labels on", (node.name for node in snapshot.labelled_nodes(policy))),
    ]


def _runs_plugin(state: ObservedState, policy: str) -> bool:
    return any(pod.policy == policy for pod in state.plugins)


def remove_plugins_and_labels(teardown: Teardown) -> Iterator[Action]:
    yield from _delete_daemon_set(teardown.snapshot, plugin_name(teardown.policy))
    yield from remove_labels(teardown.snapshot.labelled_nodes(teardown.policy), teardown.policy)


def remove_labels(nodes: Sequence[NodeObject], policy: str) -> Iterator[Action]:
    """Yields what takes ``nodes`` from their ``policy``. The labels of mode and dialect stay: they say that a
    node was ours, and by which names, until its capacity is as before.

    Numbers of cards go first: the plugin of the system that we stood in for may come back as soon as the
    label is gone, and writes its number once.
    """
    for node in nodes:
        yield from clear_counts(node)
    yield from (remove_own_labels(node, policy) for node in nodes)


def clear_counts(node: NodeObject) -> Iterator[ClearCapacity]:
    if counts := tuple(name for name in own_names(node) if name in node.counts):
        yield ClearCapacity(node.name, node.uid, counts)


def remove_own_labels(node: NodeObject, policy: str) -> LabelNode:
    named = [key for key in sorted(POLICY_LABELS) if node.labels.get(key) == policy]
    labels = dict.fromkeys((*named, *sorted(node.own_labels)))
    ours = {recorded_dialect(node).closed_cards_annotation} & node.closed_cards.keys()
    return LabelNode(node.name, node.uid, labels, dict.fromkeys(sorted(ours)))


# Capacity on nodes.
#
# For five minutes after a plugin has stopped the kubelet writes what it remembers into the node's status,
# every few seconds: the full capacity and nothing allocatable, or zeros where the plugin withdrew its list or
# the kubelet was restarted. Then it forgets the resource; the last thing that it writes is a zero. (Source:
# ``endpointStopGracePeriod`` and ``GetCapacity`` of its device manager, and ``MachineInfo`` of its node
# status.) So capacity is taken out once at the beginning and once at that end; in between it would be a fight
# that nobody wins. Zeros look alike, so time has to tell: ``repetitions`` waits.


#
# Numbers of cards, which dialects show beside, are the operator's own: the kubelet neither refreshes nor
# forgets them. So the label that records the dialect goes only when they are gone.


@dataclass(frozen=True, slots=True)
class _Capacity:
    """What is left in the status of a node, and the labels that say so."""

    node: NodeObject
    is_leaving: bool
    """Whether the node was ours, and no plugin offers anything there any more."""
    forgotten: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CapacityFinder:
    """Looks for capacity that is left."""

    def __call__(self, state: ObservedState) -> Entry[_Capacity]:
        if state.node is None:
            return NOTHING
        is_leaving = not state.policies and bool(lasting_labels(state.node))
        forgotten = forgotten_names(state)
        is_left = is_leaving or forgotten
        return Entry(_Capacity(state.node, is_leaving, forgotten)) if is_left else NOTHING


def capacity(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    leaving = _leaving_nodes(snapshot)
    return [
        # Of these nobody knows whether anything is left.
        *_leftover("a defect of the operator, see its log, about", _capacities(snapshot).defects),
        *_leftover("our resources in the status of", (node.name for node in leaving if own_names(node))),
        *_leftover("labels on", (node.name for node in leaving if not own_names(node))),
    ]


def clear_capacity(teardown: Teardown) -> Iterator[Action]:
    leaving = _leaving_nodes(teardown.snapshot)
    for node in leaving:
        if names := own_names(node):
            yield ClearCapacity(node.name, node.uid, names)
    for each in _left(teardown.snapshot):
        if each.forgotten:
            node = each.node
            yield ClearCapacity(node.name, node.uid, each.forgotten, CapacityLeft.BY_KUBELET)
    for node in leaving:
        if not shows_counts(node, own_names(node)):
            yield LabelNode(node.name, node.uid, dict.fromkeys(lasting_labels(node)))


def _leaving_nodes(snapshot: ClusterSnapshot) -> list[NodeObject]:
    return [each.node for each in _left(snapshot) if each.is_leaving]


def _left(snapshot: ClusterSnapshot) -> list[_Capacity]:
    return [each for _, each in sorted(_capacities(snapshot).results.items())]


def _capacities(snapshot: ClusterSnapshot) -> NodeIndex[_Capacity]:
    return snapshot.index(CapacityFinder())


# Startup taints: with the last policy that takes them off, nobody would any more.


def startup_taints(snapshot: ClusterSnapshot, _: str) -> list[Leftover]:
    return _leftover("startup taint on", (node.name for node in unclaimed_tainted_nodes(snapshot)))


def remove_taints(teardown: Teardown) -> Iterator[RemoveStartupTaint]:
    yield from remove_unclaimed_taints(teardown.snapshot)


# The policy itself.


def remove_finalizer(teardown: Teardown) -> Iterator[SetFinalizers]:
    if policy := teardown.snapshot.policies.get(teardown.policy):
        others = tuple(name for name in policy.finalizers if name != FINALIZER)
        yield SetFinalizers(policy.name, policy.resource_version, others)


# What several of them use.


def _leftover(description: str, names: Iterable[str]) -> list[Leftover]:
    present = tuple(names)
    return [Leftover(description, present)] if present else []


def _delete_daemon_set(snapshot: ClusterSnapshot, name: str) -> Iterator[DeleteDaemonSet]:
    daemon_set = snapshot.daemon_sets.get(name)
    if daemon_set and not daemon_set.deleting:
        yield DeleteDaemonSet(daemon_set.name, daemon_set.uid)


def _ready_nodes(snapshot: ClusterSnapshot, names: Iterable[str]) -> list[str]:
    """Returns those of ``names`` whose kubelet is there: one that is away cannot say that a pod stopped."""
    nodes = (snapshot.nodes.get(name) for name in names)
    return sorted(node.name for node in nodes if node and node.ready)
