"""Connecting the cluster's kube-schedulers to the extender while any policy needs it.

How that is undone stands in ``teardown``.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from gpushare_core.api.names import FINALIZER, SCHEDULER_LABEL
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import Action, ApplyDaemonSet, CreateJob, DeleteJob, LabelNode, Plan
from gpushare_operator.decide.hostctl_history import (
    HistoryState,
    JobHistory,
    earliest_retry,
    read_history,
    valid_attempts,
)
from gpushare_operator.decide.policy_problems import is_served
from gpushare_operator.desired.daemon_sets import extender_daemon_set
from gpushare_operator.desired.drift import has_drifted
from gpushare_operator.desired.hostctl_job import HostctlCommand, hostctl_job
from gpushare_operator.desired.names import EXTENDER_NAME, Installation

CONNECTED = "connected"
"""Value of the scheduler label."""


def scheduler_needed(snapshot: Snapshot) -> bool:
    """Returns whether a policy needs the scheduler connected, and is protected by our finalizer."""
    return any(
        not policy.deleting and FINALIZER in policy.finalizers and is_served(policy)
        for policy in snapshot.policies.values()
    )


def plan_connection(snapshot: Snapshot, installation: Installation, now: datetime) -> Plan:
    """Returns what connects the schedulers.

    The extender comes first; a scheduler is pointed at it only once it is ready on that very node.
    """
    histories = installs(snapshot, now)
    ready = [history for history in histories if extender_ready(snapshot, history.node)]
    actions = (
        *_apply_extender(snapshot, installation),
        *(action for history in ready for action in _connect(history, installation)),
        *delete_superseded_jobs(snapshot),
    )
    return Plan(actions, earliest_retry(histories))


def _apply_extender(snapshot: Snapshot, installation: Installation) -> Iterator[ApplyDaemonSet]:
    desired = extender_daemon_set(installation)
    present = snapshot.daemon_sets.get(EXTENDER_NAME)
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(EXTENDER_NAME, desired)


def _connect(history: JobHistory, installation: Installation) -> Iterator[Action]:
    """The mark comes first: it says what to restore, even if all of our objects are gone."""
    if SCHEDULER_LABEL not in history.node.labels:
        yield mark(history.node, CONNECTED)
    else:
        yield from create_due_jobs([history], installation)


def installs(snapshot: Snapshot, now: datetime) -> list[JobHistory]:
    """Returns how far each control-plane node is with being connected."""
    return [read_history(snapshot, node, HostctlCommand.INSTALL, now) for node in snapshot.control_planes]


def restores(snapshot: Snapshot, now: datetime) -> list[JobHistory]:
    """Returns how far each node is with being restored, of those that may have been edited."""
    nodes = nodes_to_restore(snapshot)
    return [read_history(snapshot, node, HostctlCommand.RESTORE, now) for node in nodes]


def nodes_to_restore(snapshot: Snapshot) -> list[NodeObject]:
    """Returns every node with a Job or a mark, and every control plane while the extender stands.

    Somebody may have deleted the Jobs, or the whole namespace: a scheduler that asks an extender that is gone
    would place no pod that shares cards, and restoring one that was never edited does nothing. A node that is
    gone needs none.
    """
    suspects = (*marked_nodes(snapshot), *_nodes_under_extender(snapshot))
    names = {*snapshot.jobs_by_node, *(node.name for node in suspects)}
    nodes = (snapshot.nodes.get(name) for name in sorted(names))
    return [node for node in nodes if node]


def _nodes_under_extender(snapshot: Snapshot) -> Sequence[NodeObject]:
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    return [] if extender is None or extender.deleting else snapshot.control_planes


def marked_nodes(snapshot: Snapshot) -> list[NodeObject]:
    """Returns nodes that say themselves that they may have been edited: nothing else has to survive."""
    return [node for node in snapshot.nodes.values() if SCHEDULER_LABEL in node.labels]


def mark(node: NodeObject, value: str | None) -> LabelNode:
    """Returns what puts a mark on ``node``, or takes it off: ``value`` None."""
    return LabelNode(node.name, node.uid, {SCHEDULER_LABEL: value})


def extender_ready(snapshot: Snapshot, node: NodeObject) -> bool:
    pod = snapshot.extender_pods.get(node.name)
    return pod is not None and pod.ready


def create_due_jobs(histories: Iterable[JobHistory], installation: Installation) -> Iterator[CreateJob]:
    """Yields the next attempt on each node where it is due."""
    for history in histories:
        if history.state is HistoryState.DUE:
            body = hostctl_job(history.command, history.node, history.next_sequence, installation)
            yield CreateJob(body["metadata"]["name"], body)


def delete_superseded_jobs(snapshot: Snapshot) -> Iterator[DeleteJob]:
    """Yields attempts that a later one has replaced, and those on nodes that are no more."""
    for name, jobs in sorted(snapshot.jobs_by_node.items()):
        node = snapshot.nodes.get(name)
        keep = valid_attempts(snapshot, node)[-1:] if node else []
        yield from (DeleteJob(job.name, job.uid) for job in jobs if job not in keep and not job.deleting)
