"""Connecting the cluster's kube-schedulers to the extender while any policy needs it.

How that is undone stands in ``teardown``.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from gpushare_core.api.names import EXTENDER_PORT, FINALIZER, SCHEDULER_LABEL
from gpushare_operator.cluster.labels import PORT_ANNOTATION
from gpushare_operator.cluster.objects import NodeObject, PodObject, PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot, oldest_first
from gpushare_operator.decide.actions import Action, ApplyDaemonSet, CreateJob, DeleteJob, LabelNode, Plan
from gpushare_operator.decide.hostctl_history import (
    HistoryState,
    JobHistory,
    earliest_retry,
    read_history,
)
from gpushare_operator.decide.policy_problems import is_served
from gpushare_operator.desired.daemon_sets import extender_daemon_set
from gpushare_operator.desired.drift import has_drifted
from gpushare_operator.desired.hostctl_job import HostctlCommand, HostctlRun, SchedulerSettings, hostctl_job
from gpushare_operator.desired.names import EXTENDER_NAME, Installation

CONNECTED = "connected"
"""Value of the scheduler label."""


def scheduler_needed(snapshot: Snapshot) -> bool:
    """Returns whether a policy needs the scheduler connected, and is protected by our finalizer."""
    return any(_needs_scheduler(snapshot, policy) for policy in snapshot.policies.values())


def _needs_scheduler(snapshot: Snapshot, policy: PolicyObject) -> bool:
    """One that cannot be read, or is not served, needs it for what is in force of it."""
    return not policy.deleting and FINALIZER in policy.finalizers and _is_in_force(snapshot, policy)


def _is_in_force(snapshot: Snapshot, policy: PolicyObject) -> bool:
    return is_served(policy) or any(snapshot.is_in_force(policy, name) for name in snapshot.share_nodes)


def scheduler_settings(snapshot: Snapshot) -> SchedulerSettings:
    """Returns what is asked of the scheduler's connection: where policies differ, the oldest one decides.

    Where that one cannot be applied, the port stays the one that is in force.
    """
    asked = frozenset(
        f"{policy.name}={policy.retry}" for policy in snapshot.policies.values() if policy.retry
    )
    policy = decisive_policy(snapshot)
    if policy is None or policy.spec is None or not is_served(policy):
        return SchedulerSettings(port=_port_in_force(snapshot), asked=asked)
    scheduler = policy.spec.scheduler
    return SchedulerSettings(port=scheduler.extender_port, timeout=scheduler.timeout_seconds, asked=asked)


def decisive_policy(snapshot: Snapshot) -> PolicyObject | None:
    """Returns the oldest of the policies in force; one that goes only when no other is left."""
    in_force = oldest_first(policy for policy in snapshot.policies.values() if _is_in_force(snapshot, policy))
    return min(in_force, key=lambda policy: policy.deleting, default=None)


def _port_in_force(snapshot: Snapshot) -> int:
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    annotations = extender.body.get("metadata", {}).get("annotations", {}) if extender else {}
    port = str(annotations.get(PORT_ANNOTATION, ""))
    return int(port) if port.isdecimal() else EXTENDER_PORT


def plan_connection(snapshot: Snapshot, installation: Installation, now: datetime) -> Plan:
    """Returns what connects the schedulers.

    The extender comes first. It waits for the keys that hostctl makes, and hostctl points a scheduler at it
    only once it is ready with them on that very node.
    """
    histories = installs(snapshot, installation, now)
    port = scheduler_settings(snapshot).port
    hosts = [history for history in histories if _has_extender(snapshot, history.node, port)]
    hosts.sort(key=lambda history: not extender_ready(snapshot, history.node, port))
    actions = (
        *_apply_extender(snapshot, installation, port),
        *_connect(hosts, due=_next_install(histories, hosts)),
        *delete_superseded_jobs(snapshot),
    )
    return Plan(actions, earliest_retry(histories))


def _apply_extender(snapshot: Snapshot, installation: Installation, port: int) -> Iterator[ApplyDaemonSet]:
    desired = extender_daemon_set(installation, port)
    present = snapshot.daemon_sets.get(EXTENDER_NAME)
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(EXTENDER_NAME, desired)


def _connect(hosts: Iterable[JobHistory], *, due: Sequence[JobHistory]) -> Iterator[Action]:
    """The mark comes first: it says what to restore, even if all of our objects are gone."""
    for history in hosts:
        if SCHEDULER_LABEL not in history.node.labels:
            yield mark(history.node, CONNECTED)
        elif history in due:
            yield create_job(history)


def _next_install(histories: Sequence[JobHistory], hosts: Sequence[JobHistory]) -> list[JobHistory]:
    """Returns the first of ``hosts`` that may be edited now, if there is one.

    The next one only when the one before serves: an edit that had to be undone may fail everywhere, so no
    other host is edited before it has succeeded there. A host that was not touched holds up nobody, nor does
    a node that is away.
    """
    if any(history.state is HistoryState.RUNNING for history in histories):
        return []
    failed = [history for history in histories if _may_fail_everywhere(history)]
    candidates = [history for history in hosts if not failed or history in failed]
    return [history for history in candidates if history.state is HistoryState.DUE][:1]


def _may_fail_everywhere(history: JobHistory) -> bool:
    failure = history.failure
    return failure is not None and failure.rolled_back and history.node.ready


def installs(snapshot: Snapshot, installation: Installation, now: datetime) -> list[JobHistory]:
    """Returns how far each host of a scheduler is with being connected."""
    run = _run(snapshot, HostctlCommand.INSTALL, installation)
    return [read_history(snapshot, node, run, now) for node in _hosts(snapshot)]


def _hosts(snapshot: Snapshot) -> list[NodeObject]:
    """Returns the control planes, and what was one when it was edited: its scheduler asks the extender,
    whatever became of the label."""
    former = (node for node in marked_nodes(snapshot) if not node.deleting)
    hosts = {node.name: node for node in (*snapshot.control_planes, *former)}
    return [hosts[name] for name in sorted(hosts)]


def restores(snapshot: Snapshot, installation: Installation, now: datetime) -> list[JobHistory]:
    """Returns how far each node is with being restored, of those that may have been edited."""
    run = _run(snapshot, HostctlCommand.RESTORE, installation)
    return [read_history(snapshot, node, run, now) for node in nodes_to_restore(snapshot)]


def _run(snapshot: Snapshot, command: HostctlCommand, installation: Installation) -> HostctlRun:
    return HostctlRun(command=command, settings=scheduler_settings(snapshot), installation=installation)


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


def _has_extender(snapshot: Snapshot, node: NodeObject, port: int) -> bool:
    """Returns whether an extender for ``port`` is ready on ``node``, or may be waiting for its keys only:
    where the kubelet is there."""
    pod = _extender_pod(snapshot, node, port)
    return pod is not None and (pod.ready or node.ready)


def extender_ready(snapshot: Snapshot, node: NodeObject, port: int) -> bool:
    """Returns whether an extender answers at ``port`` of ``node``."""
    pod = _extender_pod(snapshot, node, port)
    return pod is not None and pod.ready


def _extender_pod(snapshot: Snapshot, node: NodeObject, port: int) -> PodObject | None:
    pod = snapshot.extender_pods.get(node.name)
    return pod if pod and pod.extender_port == port else None


def next_restore(histories: Sequence[JobHistory]) -> list[JobHistory]:
    """Returns the host to be restored now, if there is one: one at a time.

    What failed holds up nobody: the manifest that is put back has served before. A kubelet that is away would
    keep its Job waiting, so those that are there come first.
    """
    if any(history.state is HistoryState.RUNNING for history in histories):
        return []
    due = [history for history in histories if history.state is HistoryState.DUE]
    return sorted(due, key=lambda history: (history.failure is not None, not history.node.ready))[:1]


def create_job(history: JobHistory) -> CreateJob:
    """Returns what begins the next attempt."""
    body = hostctl_job(
        history.run,
        history.node,
        history.next_sequence,
        rolled_back_inputs=history.rolled_back_inputs,
    )
    return CreateJob(body["metadata"]["name"], body)


def delete_superseded_jobs(snapshot: Snapshot) -> Iterator[DeleteJob]:
    """Yields attempts that a later one has replaced. The last one on a host stays even when its Node is gone:
    the Node may come back, and the files there are as they were left."""
    for _, jobs in sorted(snapshot.jobs_by_node.items()):
        yield from (DeleteJob(job.name, job.uid) for job in jobs[:-1] if not job.deleting)
