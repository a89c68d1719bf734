"""Backend KubeScheduler: connecting the cluster's kube-schedulers to the extender while any policy needs it.

How that is undone stands in ``teardown``.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from gpushare_core.api.names import EXTENDER_PORT, FINALIZER, SCHEDULER_LABEL
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.cluster.labels import EXTERNAL_MARK, PORT_ANNOTATION, read_ports
from gpushare_operator.cluster.objects import DaemonSetObject, NodeObject, PodObject, PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot, oldest_first
from gpushare_operator.decide.actions import Action, ApplyDaemonSet, CreateJob, DeleteJob, LabelNode, Plan
from gpushare_operator.decide.hostctl_history import (
    HistoryState,
    JobHistory,
    earliest_retry,
    hosts_at_work,
    last_job,
    read_history,
)
from gpushare_operator.decide.nodes.dialect_names import ignored_resources, managed_resources
from gpushare_operator.decide.policy_problems import is_served
from gpushare_operator.desired.daemon_sets import extender_daemon_set, is_external
from gpushare_operator.desired.drift import has_drifted
from gpushare_operator.desired.extender_log import ExtenderLog
from gpushare_operator.desired.hostctl_job import HostctlCommand, HostctlRun, SchedulerSettings, hostctl_job
from gpushare_operator.desired.names import EXTENDER_NAME, Installation


def scheduler_needed(snapshot: ClusterSnapshot) -> bool:
    """Returns whether a node shares its cards under a policy that stays, and is protected by our finalizer.

    What a policy without nodes asks for concerns no scheduler.
    """
    return any(_needs_scheduler(snapshot, policy) for policy in snapshot.policies.values())


def _needs_scheduler(snapshot: ClusterSnapshot, policy: PolicyObject) -> bool:
    is_staying = not policy.deleting and FINALIZER in policy.finalizers
    return is_staying and snapshot.traits.shares_node(policy)


def scheduler_settings(snapshot: ClusterSnapshot) -> SchedulerSettings:
    """Returns what is asked of the scheduler's connection: where policies differ, the oldest one decides.

    Where that one cannot be applied, the port stays the one that is in force.
    """
    asked = frozenset(
        f"{policy.name}={policy.retry}" for policy in snapshot.policies.values() if policy.retry
    )
    settings = SchedulerSettings(
        port=_port_in_force(snapshot),
        listening=ports_in_force(snapshot),
        asked=asked,
        resources=managed_resources(snapshot),
        ignored_resources=ignored_resources(snapshot),
    )
    policy = decisive_policy(snapshot)
    if policy is None or policy.spec is None or not is_served(policy):
        return settings
    scheduler = policy.spec.scheduler
    return replace(
        settings,
        port=scheduler.extender_port,
        timeout=scheduler.timeout_seconds,
        weight=policy.spec.placement.weight,
    )


def decisive_policy(snapshot: ClusterSnapshot) -> PolicyObject | None:
    """Returns the oldest of the policies under which nodes share their cards; one that goes only when no
    other is left. By one without nodes what others leave behind is taken back."""
    in_order = oldest_first(policy for policy in snapshot.policies.values() if _may_decide(snapshot, policy))
    shares_node = snapshot.traits.shares_node
    return min(in_order, key=lambda each: (each.deleting, not shares_node(each)), default=None)


def _may_decide(snapshot: ClusterSnapshot, policy: PolicyObject) -> bool:
    return is_served(policy) or snapshot.traits.shares_node(policy)


def extender_log(snapshot: ClusterSnapshot) -> ExtenderLog:
    """Returns where extenders keep their log besides: the oldest policy that names a folder decides.

    Where none does and one of them cannot be read, it stays where it is.
    """
    in_force = oldest_first(policy for policy in snapshot.policies.values() if _may_decide(snapshot, policy))
    specs = [policy.spec for policy in in_force]
    folder = next((spec.extender.log_folder for spec in specs if spec and spec.extender.log_folder), "")
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    if not folder and None in specs and extender:
        return ExtenderLog.of_daemon_set(extender.body)
    return ExtenderLog.below(folder)


def _port_in_force(snapshot: ClusterSnapshot) -> int:
    return next(iter(ports_in_force(snapshot)), EXTENDER_PORT)


def ports_in_force(snapshot: ClusterSnapshot) -> tuple[int, ...]:
    """Returns where schedulers may call. Where somebody deleted the extender the Jobs still know."""
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    annotations = extender.body.get("metadata", {}).get("annotations", {}) if extender else {}
    jobs = sorted(snapshot.jobs.values(), key=lambda job: job.name)
    known = dict.fromkeys(port for job in jobs for port in job.extender_ports)
    return read_ports(str(annotations.get(PORT_ANNOTATION, ""))) or tuple(known)


def plan_connection(snapshot: ClusterSnapshot, installation: Installation, now: datetime) -> Plan:
    """Returns what connects the schedulers.

    A host is marked first, which brings the extender there. It waits for the keys that hostctl makes, and
    hostctl points a scheduler at it only once it is ready with them on that very node. A host that has lost
    all labels has lost its extender, so it is restored.
    """
    histories = installs(snapshot, installation, now)
    port = scheduler_settings(snapshot).port
    hosts = [history for history in histories if _has_extender(snapshot, history, port)]
    hosts.sort(key=lambda history: not extender_ready(snapshot, history.node, port))
    former = _restores_of(snapshot, unlabelled_hosts(snapshot), installation, now)
    actions: tuple[Action, ...] = (
        *_apply_extender(snapshot, installation, _extender_ports(snapshot, histories, port)),
        *_mark_hosts(snapshot, histories),
        *(create_job(history) for history in _next_run(snapshot, histories, hosts, former)),
        *delete_superseded_jobs(snapshot),
    )
    return Plan(actions, earliest_retry([*histories, *former]))


def _next_run(
    snapshot: ClusterSnapshot,
    histories: Sequence[JobHistory],
    hosts: Sequence[JobHistory],
    former: Sequence[JobHistory],
) -> list[JobHistory]:
    """Returns the host that is to be worked on now, if there is one: one at a time."""
    if hosts_at_work(snapshot):
        return []
    return next_restore(snapshot, former) or _next_install(histories, hosts)


def _extender_ports(snapshot: ClusterSnapshot, histories: Sequence[JobHistory], port: int) -> list[int]:
    """Returns ``port``, and those of before as long as any scheduler may still call them."""
    if all(history.is_connected for history in histories):
        return [port]
    return [port, *(former for former in ports_in_force(snapshot) if former != port)]


def _apply_extender(
    snapshot: ClusterSnapshot, installation: Installation, ports: Sequence[int]
) -> Iterator[ApplyDaemonSet]:
    present = snapshot.daemon_sets.get(EXTENDER_NAME)
    desired = extender_daemon_set(installation, ports, extender_log(snapshot))
    if present is None or (not present.deleting and has_drifted(present.body, desired)):
        yield ApplyDaemonSet(EXTENDER_NAME, desired)


def _mark_hosts(snapshot: ClusterSnapshot, histories: Iterable[JobHistory]) -> Iterator[LabelNode]:
    """A mark says what to restore, even if all of our objects are gone.

    A restored host has lost its keys, and an extender from before has only their folder of then: it goes with
    the mark, and a new mark brings a new one.
    """
    for history in histories:
        if not _is_marked(history.node):
            if not _loses_keys(snapshot, history) and not _has_former_extender(snapshot, history.node):
                yield mark(history.node, str(history.next_sequence))
        elif _has_stale_mark(history):
            yield mark(history.node, None)


def _loses_keys(snapshot: ClusterSnapshot, history: JobHistory) -> bool:
    """Returns whether the host is being restored, or an extender is still there from before it was."""
    job = history.last.job if history.last else None
    is_restoring = job is not None and job.active and job.command == HostctlCommand.RESTORE
    return is_restoring or (_was_restored(history) and history.node.name in snapshot.extender_pods)


def _has_former_extender(snapshot: ClusterSnapshot, node: NodeObject) -> bool:
    """Returns whether an extender is still there that nothing keeps on ``node``.

    Kubernetes 1.36 takes it for a pod of the DaemonSet that was made anew under the same name, and when it is
    gone never looks at the node again: no extender would come.
    """
    return SCHEDULER_LABEL not in node.labels and node.name in snapshot.extender_pods


def _is_marked(node: NodeObject) -> bool:
    return node.labels.get(SCHEDULER_LABEL, EXTERNAL_MARK) != EXTERNAL_MARK


def _was_restored(history: JobHistory) -> bool:
    job = history.last.job if history.last else None
    return job is not None and job.complete and job.command == HostctlCommand.RESTORE


def _has_stale_mark(history: JobHistory) -> bool:
    """Returns whether the mark is from before the host was restored: its value is the number of the attempt
    that it was made for."""
    value = history.node.labels.get(SCHEDULER_LABEL, "")
    attempt = whole_number(value)
    return _was_restored(history) and attempt < history.next_sequence


def _next_install(histories: Sequence[JobHistory], hosts: Sequence[JobHistory]) -> list[JobHistory]:
    """Returns the first of ``hosts`` that may be edited now, if there is one; none of ``histories`` is.

    The next one only when the one before serves: an edit that had to be undone may fail everywhere, so no
    other host is edited before it has succeeded there. A host that was not touched holds up nobody, nor does
    a node that is away. Keys that run out do not wait for other hosts' failures: that edit is in force.
    """
    failed = [history for history in histories if _may_fail_everywhere(history)]
    due = [history for history in hosts if history.state is HistoryState.DUE]
    candidates = [history for history in due if not failed or history in failed]
    return [*candidates, *(history for history in hosts if history.state is HistoryState.RENEWAL)][:1]


def _may_fail_everywhere(history: JobHistory) -> bool:
    failure = history.failure
    return failure is not None and failure.rolled_back and history.node.ready


def installs(snapshot: ClusterSnapshot, installation: Installation, now: datetime) -> list[JobHistory]:
    """Returns how far each host of a scheduler is with being connected."""
    run = _run(snapshot, HostctlCommand.INSTALL, installation)
    return [read_history(snapshot, node, run, now) for node in _hosts(snapshot)]


def is_connecting(snapshot: ClusterSnapshot, installation: Installation, now: datetime) -> bool:
    """Returns whether a host that is there is being connected, or is about to be."""
    unfinished = (HistoryState.DUE, HistoryState.RUNNING)
    histories = installs(snapshot, installation, now)
    return any(history.state in unfinished and history.node.ready for history in histories)


def _hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns the control planes, and what was one when it was edited: its scheduler asks the extender,
    whatever became of the label."""
    former = (node for node in marked_nodes(snapshot) if not node.deleting)
    hosts = {node.name: node for node in (*snapshot.control_planes, *former)}
    return [hosts[name] for name in sorted(hosts)]


def restores(snapshot: ClusterSnapshot, installation: Installation, now: datetime) -> list[JobHistory]:
    """Returns how far each node is with being restored, of those that may have been edited."""
    return _restores_of(snapshot, nodes_to_restore(snapshot), installation, now)


def _restores_of(
    snapshot: ClusterSnapshot, nodes: Iterable[NodeObject], installation: Installation, now: datetime
) -> list[JobHistory]:
    run = _run(snapshot, HostctlCommand.RESTORE, installation)
    return [read_history(snapshot, node, run, now) for node in nodes]


def _run(snapshot: ClusterSnapshot, command: HostctlCommand, installation: Installation) -> HostctlRun:
    return HostctlRun(command=command, settings=scheduler_settings(snapshot), installation=installation)


def nodes_to_restore(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns every node with a Job or a mark, and every control plane while the extender stands.

    Somebody may have deleted the Jobs, or the whole namespace: a scheduler that asks an extender that is gone
    would place no pod that shares cards, and restoring one that was never edited does nothing. A node that is
    gone needs none, nor one that a person has let go.
    """
    suspects = (*marked_nodes(snapshot), *_nodes_under_extender(snapshot))
    names = {*snapshot.jobs_by_node, *(node.name for node in suspects)} - _let_go(snapshot)
    nodes = (snapshot.nodes.get(name) for name in sorted(names))
    return [node for node in nodes if node]


def hosts_let_go(snapshot: ClusterSnapshot) -> list[str]:
    """Returns the nodes that stay edited when nothing is left to restore: people have let them go, or their
    Node is gone."""
    edited = {name for name in snapshot.jobs_by_node if not _is_restored(snapshot, name)}
    marked = {node.name for node in marked_nodes(snapshot)}
    gone = edited - set(snapshot.nodes)
    return sorted(gone | (edited | marked) & _let_go(snapshot))


def withdraw_runs(snapshot: ClusterSnapshot) -> Iterator[DeleteJob]:
    """Yields runs on hosts that people have let go: none may begin should such a host come back."""
    for name in sorted(hosts_at_work(snapshot) & _let_go(snapshot)):
        job = last_job(snapshot, name)
        if job and not job.deleting:
            yield DeleteJob(job.name, job.uid)


def _let_go(snapshot: ClusterSnapshot) -> set[str]:
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


def unlabelled_hosts(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns nodes that were edited, and carry no label any more that says so: somebody made their Node
    anew."""
    names = {name for name in snapshot.jobs_by_node if not _is_restored(snapshot, name)}
    names -= {node.name for node in _hosts(snapshot)} | _let_go(snapshot)
    return [snapshot.nodes[name] for name in sorted(names) if name in snapshot.nodes]


def _nodes_under_extender(snapshot: ClusterSnapshot) -> Sequence[NodeObject]:
    extender = kube_scheduler_extender(snapshot)
    return [] if extender is None or extender.deleting else snapshot.control_planes


def kube_scheduler_extender(snapshot: ClusterSnapshot) -> DaemonSetObject | None:
    """Returns the extender's DaemonSet, if it is there for schedulers that hostctl connects."""
    extender = snapshot.daemon_sets.get(EXTENDER_NAME)
    return None if is_external(extender) else extender


def marked_nodes(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns nodes that say themselves that they may have been edited: nothing else has to survive."""
    return [node for node in snapshot.traits.hosts if _is_marked(node)]


def settled_marks(snapshot: ClusterSnapshot) -> list[NodeObject]:
    """Returns marked nodes whose hosts are restored. On one that was let go the mark stays: when the host
    comes back it is restored like any other, whether there is a policy by then or not."""
    lost = _let_go(snapshot)
    return [node for node in marked_nodes(snapshot) if node.name not in lost]


def mark(node: NodeObject, value: str | None) -> LabelNode:
    """Returns what puts a mark on ``node``, or takes it off: ``value`` None."""
    return LabelNode(node.name, node.uid, {SCHEDULER_LABEL: value})


def _has_extender(snapshot: ClusterSnapshot, history: JobHistory, port: int) -> bool:
    """Returns whether an extender for ``port`` is ready on a host, or may be waiting for its keys only: where
    the kubelet is there."""
    node = history.node
    pod = _extender_pod(snapshot, node, port)
    may_serve = pod is not None and (pod.ready or node.ready)
    return may_serve and _is_marked(node) and not _has_stale_mark(history)


def extender_ready(snapshot: ClusterSnapshot, node: NodeObject, port: int) -> bool:
    """Returns whether an extender answers at ``port`` of ``node``."""
    pod = _extender_pod(snapshot, node, port)
    return pod is not None and pod.ready


def _extender_pod(snapshot: ClusterSnapshot, node: NodeObject, port: int) -> PodObject | None:
    pod = snapshot.extender_pods.get(node.name)
    return pod if pod and port in pod.extender_ports else None


def next_restore(snapshot: ClusterSnapshot, histories: Sequence[JobHistory]) -> list[JobHistory]:
    """Returns the host to be restored now, if there is one: one at a time.

    What failed holds up nobody: the manifest that is put back has served before. A kubelet that is away would
    keep its Job waiting, so those that are there come first; where a Job was given up because of that,
    another one would only leave one more pod that cannot stop.
    """
    if hosts_at_work(snapshot):
        return []
    due = [history for history in histories if history.state is HistoryState.DUE and not _is_stuck(history)]
    return sorted(due, key=lambda history: (history.failure is not None, not history.node.ready))[:1]


def _is_stuck(history: JobHistory) -> bool:
    return history.failure is not None and history.failure.job.failing


def create_job(history: JobHistory) -> CreateJob:
    """Returns what begins the next attempt."""
    body = hostctl_job(
        history.run,
        history.node,
        history.next_sequence,
        history.occasion,
    )
    return CreateJob(body["metadata"]["name"], body)


def delete_superseded_jobs(snapshot: ClusterSnapshot) -> Iterator[DeleteJob]:
    """Yields attempts that a later one has replaced. The last one on a host stays even when its Node is gone:
    the Node may come back, and the files there are as they were left."""
    for _, jobs in sorted(snapshot.jobs_by_node.items()):
        yield from (DeleteJob(job.name, job.uid) for job in jobs[:-1] if not job.deleting)
