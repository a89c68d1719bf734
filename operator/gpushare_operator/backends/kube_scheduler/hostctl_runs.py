"""The runs of hostctl on hosts of kube-schedulers: how far each is, which is due, and which Job may go."""

from collections.abc import Iterable, Iterator, Sequence

from gpushare_operator.actions import CreateJob, DeleteJob, RecordResult
from gpushare_operator.backends.kube_scheduler.hostctl_job import HostctlCommand, HostctlRun, hostctl_job
from gpushare_operator.backends.kube_scheduler.hosts import hosts, let_go, nodes_to_restore
from gpushare_operator.backends.kube_scheduler.job_history import (
    HistoryState,
    JobHistory,
    hosts_at_work,
    last_job,
    read_history,
)
from gpushare_operator.backends.teardown import Situation
from gpushare_operator.cluster.objects import NodeObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies.scheduler_settings import scheduler_settings


def installs(situation: Situation) -> list[JobHistory]:
    """Returns how far each host of a scheduler is with being connected."""
    return _histories(situation, HostctlCommand.INSTALL, hosts(situation.snapshot))


def restores(situation: Situation) -> list[JobHistory]:
    """Returns how far each node is with being restored, of those that may have been edited."""
    return restores_of(situation, nodes_to_restore(situation.snapshot))


def restores_of(situation: Situation, nodes: Iterable[NodeObject]) -> list[JobHistory]:
    return _histories(situation, HostctlCommand.RESTORE, nodes)


def _histories(
    situation: Situation, command: HostctlCommand, nodes: Iterable[NodeObject]
) -> list[JobHistory]:
    snapshot, installation = situation.snapshot, situation.installation
    run = HostctlRun(command=command, settings=scheduler_settings(snapshot), installation=installation)
    return [read_history(snapshot, node, run, situation.now) for node in nodes]


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
    body = hostctl_job(history.run, history.node, history.next_sequence, history.occasion)
    return CreateJob(body["metadata"]["name"], body)


def withdraw_runs(snapshot: ClusterSnapshot) -> Iterator[DeleteJob]:
    """Yields runs on hosts that people have let go: none may begin should such a host come back."""
    for name in sorted(hosts_at_work(snapshot) & let_go(snapshot)):
        job = last_job(snapshot, name)
        if job and not job.deleting:
            yield DeleteJob(job.name, job.uid)


def delete_superseded_jobs(snapshot: ClusterSnapshot) -> Iterator[DeleteJob]:
    """Yields attempts that a later one has replaced. The last one on a host stays even when its Node is gone:
    the Node may come back, and the files there are as they were left."""
    for _, jobs in sorted(snapshot.jobs_by_node.items()):
        yield from (DeleteJob(job.name, job.uid) for job in jobs[:-1] if not job.deleting)


def record_results(snapshot: ClusterSnapshot) -> Iterator[RecordResult]:
    """Yields what has Jobs remember how hostctl itself ended, where somebody has added a container to the
    pod: a container that never ends keeps the Job open until its deadline, and then the pod is gone."""
    for job in snapshot.jobs.values():
        pod = snapshot.pod_of_job(job.name)
        if pod and pod.is_held_open and pod.exit_code is not None and job.result is None and not job.deleting:
            yield RecordResult(job.name, job.uid, pod.exit_code)
