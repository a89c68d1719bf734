"""How the cluster's kube-schedulers are connected to the engine while any policy needs it."""

from collections.abc import Iterable, Iterator, Sequence

from gpushare_core.api.enums import Engine
from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.actions import Action, LabelNode, Plan
from gpushare_operator.backends.extender_workload.daemon_set import apply_extender, extender_daemon_set
from gpushare_operator.backends.extender_workload.hosts import extender_pod, extender_ready, mark
from gpushare_operator.backends.extender_workload.log_folder import extender_log
from gpushare_operator.backends.kube_scheduler.engine import engine_choice, obstacle
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.backends.kube_scheduler.hostctl_runs import (
    create_job,
    delete_superseded_jobs,
    installs,
    next_restore,
    restores_of,
    withdraw_vain_runs,
)
from gpushare_operator.backends.kube_scheduler.hosts import is_marked, unlabelled_hosts
from gpushare_operator.backends.kube_scheduler.job_history import (
    HistoryState,
    JobHistory,
    earliest_retry,
    hosts_at_work,
)
from gpushare_operator.backends.teardown_step import Situation, delete_daemon_set
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME
from gpushare_operator.policies.scheduler_settings import ports_in_force, scheduler_settings


def connect(situation: Situation) -> Plan:
    """Returns what connects the schedulers.

    1. The operator marks a host, which brings the extender there, if kube-scheduler is to ask one.
    2. The extender waits for the keys that hostctl makes.
    3. hostctl points the scheduler at the extender once that is ready on the same node; or gives it our image
       with the plugin.

    A host that has lost all labels has lost its extender, so it is restored.
    """
    snapshot, histories = situation.snapshot, installs(situation)
    former = restores_of(situation, unlabelled_hosts(snapshot))
    is_held_up = obstacle(situation) is not None
    ready = [] if is_held_up else _ready_hosts(situation, histories)
    runs = next_restore(snapshot, former) or _next_install(histories, ready)
    actions: tuple[Action, ...] = (
        *(() if is_held_up else _make_room(situation, histories)),
        *(create_job(history) for history in runs if not hosts_at_work(snapshot)),
        *withdraw_vain_runs([*([] if is_held_up else histories), *former]),
        *delete_superseded_jobs(snapshot),
    )
    return Plan(actions, earliest_retry([*histories, *former]))


def _make_room(situation: Situation, histories: Sequence[JobHistory]) -> Iterator[Action]:
    """Yields what has to be there before hosts are edited, and what is not needed any more."""
    snapshot = situation.snapshot
    if engine_choice(situation).engine is Engine.EXTENDER:
        ports = _extender_ports(snapshot, histories, scheduler_settings(snapshot).port)
        extender = extender_daemon_set(situation.installation, ports, extender_log(snapshot))
        yield from apply_extender(snapshot, extender)
    elif all(history.is_connected for history in histories):
        # No kube-scheduler calls it any more.
        yield from delete_daemon_set(snapshot, EXTENDER_NAME)
    yield from _mark_hosts(snapshot, histories)


def _ready_hosts(situation: Situation, histories: Sequence[JobHistory]) -> list[JobHistory]:
    """Returns the hosts that may be edited, those first that need to wait for nothing."""
    snapshot = situation.snapshot
    marked = [history for history in histories if is_marked(history.node) and not _has_stale_mark(history)]
    if engine_choice(situation).engine is Engine.PLUGIN:
        return [history for history in marked if history.node.ready]
    port = scheduler_settings(snapshot).port
    ready = [history for history in marked if _has_extender(snapshot, history.node, port)]
    return sorted(ready, key=lambda history: not extender_ready(snapshot, history.node, port))


def _extender_ports(snapshot: ClusterSnapshot, histories: Sequence[JobHistory], port: int) -> list[int]:
    """Returns ``port``, and the former ports while any scheduler may still call them."""
    if all(history.is_connected for history in histories):
        return [port]
    return [port, *(former for former in ports_in_force(snapshot) if former != port)]


def _mark_hosts(snapshot: ClusterSnapshot, histories: Iterable[JobHistory]) -> Iterator[LabelNode]:
    """A mark says which hosts to restore, even if all of our objects are gone.

    Restoring a host deletes its keys, and an extender from before sees only the deleted folder: the mark goes
    with that extender, and a new mark brings a new one.
    """
    for history in histories:
        if not is_marked(history.node):
            if not _loses_keys(snapshot, history) and not _has_former_extender(snapshot, history.node):
                yield mark(history.node, str(history.next_sequence))
        elif _has_stale_mark(history):
            yield mark(history.node, None)


def _loses_keys(snapshot: ClusterSnapshot, history: JobHistory) -> bool:
    """Returns whether the host is being restored, or still has an extender from before it was restored."""
    job = history.last.job if history.last else None
    is_restoring = job is not None and job.active and job.command == HostctlCommand.RESTORE
    return is_restoring or (_was_restored(history) and history.node.name in snapshot.extender_pods)


def _has_former_extender(snapshot: ClusterSnapshot, node: NodeObject) -> bool:
    """Returns whether ``node`` has an extender although no label keeps it there.

    If the DaemonSet is made anew under the same name, Kubernetes 1.36 takes that pod for one of the new
    DaemonSet, and never looks at the node again when the pod is gone: no extender would come.
    """
    return SCHEDULER_LABEL not in node.labels and node.name in snapshot.extender_pods


def _was_restored(history: JobHistory) -> bool:
    job = history.last.job if history.last else None
    return job is not None and job.complete and job.command == HostctlCommand.RESTORE


def _has_stale_mark(history: JobHistory) -> bool:
    """Returns whether the mark is from before the host was restored; its value is the number of the attempt
    that it was made for."""
    attempt = whole_number(history.node.labels.get(SCHEDULER_LABEL, ""))
    return _was_restored(history) and attempt < history.next_sequence


def _next_install(histories: Sequence[JobHistory], ready: Sequence[JobHistory]) -> list[JobHistory]:
    """Returns the first of ``ready`` that may be edited now, if any:

    1. a host that is due. After an edit that hostctl had to undo, only the host where that happened: the edit
       may fail everywhere. Failures that left the host untouched, or on a node that is away, do not count;
    2. a host that needs new keys. Its edit is in force, so other hosts' failures do not matter.
    """
    rolled_back = (history for history in histories if history.failure and history.failure.rolled_back)
    failed = [history for history in rolled_back if history.node.ready]
    due = [history for history in ready if history.state is HistoryState.DUE]
    candidates = [history for history in due if not failed or history in failed]
    return [*candidates, *(history for history in ready if history.state is HistoryState.RENEWAL)][:1]


def is_connecting(situation: Situation) -> bool:
    """Returns whether a host that is there is being connected, or is about to be."""
    unfinished = (HistoryState.DUE, HistoryState.RUNNING)
    histories = installs(situation)
    return any(history.state in unfinished and history.node.ready for history in histories)


def _has_extender(snapshot: ClusterSnapshot, node: NodeObject, port: int) -> bool:
    """Returns whether a host has an extender for ``port`` that is ready, or that may only be waiting for its
    keys, which it can while the kubelet is there."""
    pod = extender_pod(snapshot, node, port)
    return pod is not None and (pod.ready or node.ready)
