"""The runs of hostctl on hosts of kube-schedulers: how far each is, which is due, and which Job may go."""

from collections.abc import Iterable, Iterator, Sequence

from gpushare_operator.actions import CreateJob, DeleteJob, RecordResult
from gpushare_operator.backends.engine_image import cannot_be_pulled
from gpushare_operator.backends.kube_scheduler.engine import engine_choice
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, HostctlRun, hostctl_job
from gpushare_operator.backends.kube_scheduler.hosts import hosts, let_go, nodes_to_restore
from gpushare_operator.backends.kube_scheduler.job_history import (
    HistoryState,
    JobHistory,
    hosts_at_work,
    last_job,
    read_history,
)
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies.scheduler_settings import scheduler_settings


def installs(situation: Situation) -> list[JobHistory]:
    return _histories(situation, HostctlCommand.INSTALL, hosts(situation.snapshot))


def restores(situation: Situation) -> list[JobHistory]:
    return restores_of(situation, nodes_to_restore(situation.snapshot))


def restores_of(situation: Situation, nodes: Iterable[NodeObject]) -> list[JobHistory]:
    return _histories(situation, HostctlCommand.RESTORE, nodes)


def _histories(
    situation: Situation, command: HostctlCommand, nodes: Iterable[NodeObject]
) -> list[JobHistory]:
    snapshot, installation = situation.snapshot, situation.installation
    run = HostctlRun(
        command=command,
        settings=scheduler_settings(snapshot),
        installation=installation,
        choice=engine_choice(situation),
    )
    return [read_history(snapshot, node, run, situation.now) for node in nodes]


def next_restore(snapshot: ClusterSnapshot, histories: Sequence[JobHistory]) -> list[JobHistory]:
    """Returns the one host that is to be restored now, if any.

    A host whose restoring failed comes last: it holds up nobody, because the manifest that is put back has
    served before. Ready nodes come before others, which would keep their Job waiting. A host whose Job
    Kubernetes has given up for that reason gets no other one: its pod could not stop either.
    """
    if hosts_at_work(snapshot):
        return []
    due = [
        history
        for history in histories
        if history.state is HistoryState.DUE and not (history.failure and history.failure.job.failing)
    ]
    return sorted(due, key=lambda history: (history.failure is not None, not history.node.ready))[:1]


def create_job(history: JobHistory) -> CreateJob:
    body = hostctl_job(history.run, history.node, history.next_sequence, history.occasion)
    return CreateJob(body["metadata"]["name"], body)


def withdraw_runs(snapshot: ClusterSnapshot) -> Iterator[DeleteJob]:
    """Yields the runs on hosts that people have let go: none may begin when such a host comes back."""
    for name in sorted(hosts_at_work(snapshot) & let_go(snapshot)):
        job = last_job(snapshot, name)
        if job and not job.deleting:
            yield DeleteJob(job.name, job.uid)


def withdraw_vain_runs(histories: Iterable[JobHistory]) -> Iterator[DeleteJob]:
    """Yields the runs that wait for an image although another run is asked for by now, with another engine
    or to restore the host: they would hold that up until their deadline, and hostctl has not begun. One that
    begins meanwhile puts back what it did."""
    for history in histories:
        last = history.last
        if last is None or not last.job.active or last.job.deleting or last.pod is None:
            continue
        job, run = last.job, history.run
        is_another = (job.command, job.inputs_hash) != (run.command, run.inputs_hash)
        if is_another and cannot_be_pulled(last.pod.waiting):
            yield DeleteJob(job.name, job.uid)


def delete_superseded_jobs(snapshot: ClusterSnapshot) -> Iterator[DeleteJob]:
    """Yields the attempts that a later one has replaced. The last attempt on a host stays even without its
    Node: the Node may come back, with the files as they were left."""
    for _, jobs in sorted(snapshot.jobs_by_node.items()):
        yield from (DeleteJob(job.name, job.uid) for job in jobs[:-1] if not job.deleting)


def record_results(snapshot: ClusterSnapshot) -> Iterator[RecordResult]:
    """Yields the exit codes of hostctl for Jobs to whose pods somebody has added a container: if that one
    never ends, the Job fails at its deadline, and its pod is gone."""
    for job in snapshot.jobs.values():
        pod = snapshot.pod_of_job(job.name)
        if pod and pod.is_held_open and pod.exit_code is not None and job.result is None and not job.deleting:
            yield RecordResult(job.name, job.uid, pod.exit_code)
