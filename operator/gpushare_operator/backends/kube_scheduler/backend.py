"""Backend KubeScheduler: its row in the table, and how it is taken back."""

from collections.abc import Iterator

from gpushare_core.api.enums import Backend
from gpushare_operator.actions import Action, DeleteDaemonSet, DeleteJob
from gpushare_operator.backends.backend import SchedulerBackend
from gpushare_operator.backends.extender_workload.daemon_set import is_external
from gpushare_operator.backends.extender_workload.hosts import mark
from gpushare_operator.backends.kube_scheduler.condition import condition, disconnected, disconnecting
from gpushare_operator.backends.kube_scheduler.connection import connect, is_connecting
from gpushare_operator.backends.kube_scheduler.engine import engine_choice
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand
from gpushare_operator.backends.kube_scheduler.hostctl_runs import (
    create_job,
    delete_superseded_jobs,
    next_restore,
    record_results,
    restores,
    withdraw_runs,
    withdraw_vain_runs,
)
from gpushare_operator.backends.kube_scheduler.hosts import (
    kube_scheduler_extender,
    marked_nodes,
    nodes_to_restore,
    settled_marks,
)
from gpushare_operator.backends.kube_scheduler.job_history import earliest_retry, is_done
from gpushare_operator.backends.teardown_step import (
    Situation,
    connection_step,
    delete_daemon_set,
    ready_nodes,
)
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.names import EXTENDER_NAME


def _has_edited_schedulers(snapshot: ClusterSnapshot) -> bool:
    return any(not _is_restored(snapshot, node) for node in nodes_to_restore(snapshot))


def _restore_schedulers(situation: Situation) -> Iterator[Action]:
    snapshot = situation.snapshot
    if _has_edited_schedulers(snapshot):
        yield from (create_job(history) for history in next_restore(snapshot, restores(situation)))
        # With the mark the host's extender goes, whose keys are gone already.
        yield from (mark(node, None) for node in marked_nodes(snapshot) if _is_restored(snapshot, node))
        yield from withdraw_runs(snapshot)
        yield from withdraw_vain_runs(restores(situation))
        yield from delete_superseded_jobs(snapshot)


def _is_restored(snapshot: ClusterSnapshot, node: NodeObject) -> bool:
    return is_done(snapshot, node, HostctlCommand.RESTORE)


def _delete_extender(situation: Situation) -> Iterator[DeleteDaemonSet]:
    if kube_scheduler_extender(situation.snapshot):
        yield from delete_daemon_set(situation.snapshot, EXTENDER_NAME)


def _stopping_extenders(snapshot: ClusterSnapshot) -> list[str]:
    if is_external(snapshot.daemon_sets.get(EXTENDER_NAME)):
        return []
    return ready_nodes(snapshot, snapshot.extender_pods)


def _delete_jobs(situation: Situation) -> Iterator[DeleteJob]:
    present = situation.snapshot.jobs.values()
    yield from (DeleteJob(job.name, job.uid) for job in present if not job.deleting)


KUBE_SCHEDULER = SchedulerBackend(
    name=Backend.KUBE_SCHEDULER,
    connect=connect,
    condition=condition,
    engine=engine_choice,
    disconnecting=disconnecting,
    disconnected=disconnected,
    needed_by_others="the scheduler stays connected",
    is_in_force=lambda _: True,
    is_connecting=is_connecting,
    upkeep=record_results,
    teardown_steps=(
        # While the extender still answers: a scheduler that asks an extender that is gone places no pod that
        # shares cards.
        connection_step(
            "schedulers restored",
            left=_has_edited_schedulers,
            actions=_restore_schedulers,
            retry_after=lambda situation: earliest_retry(restores(situation)),
        ),
        # Nobody asks the extender any more. While it stands, every control plane counts as edited.
        connection_step("extender", left=kube_scheduler_extender, actions=_delete_extender),
        # A mark says that its node may have to be restored, even if all of our objects were deleted: it
        # outlives the restoring.
        connection_step(
            "marks on control-plane nodes",
            left=settled_marks,
            actions=lambda situation: [mark(node, None) for node in settled_marks(situation.snapshot)],
        ),
        # The Jobs outlive the marks: they say that a marked node was restored already.
        connection_step("Jobs", left=lambda snapshot: snapshot.jobs, actions=_delete_jobs),
        # The extender's pods go with its DaemonSet; only what follows has to wait until they have stopped.
        connection_step("extender stopped", left=_stopping_extenders),
    ),
)
