"""The Job history of one node: hostctl's runs on it say what was done to its kube-scheduler.

The operator creates a Job before hostctl touches the node, and deletes it after the node was restored. Since
somebody else may delete it earlier, a node without a Job says nothing, and the desired command is due: every
command may be repeated. Attempts are numbered; one is deleted only when a later one exists.

hostctl edits files of a host, and a host is known by its node's name: its Node object may be made anew at any
time. So a history outlives the Node. A Node with another UID may be another machine, so there the command is
due again.

::

    (none) --install--> running --> complete (edited)
                            \\--> failed ---backoff---> next install
    any finished install --restore--> running --> complete (as before)
                                          \\--> failed --backoff--> next restore

An edit that hostctl undid because kube-scheduler did not serve with it has left the cluster without a
scheduler for a time. It is tried again only if one of its inputs has changed, or a person asks for it. The
operator compares the inputs that it gives to hostctl; hostctl compares those on the host, in a run that
otherwise touches nothing.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import isfinite

from gpushare_core.api.names import SCHEDULER_LABEL
from gpushare_core.text.json_object import UNREADABLE_JSON, Json
from gpushare_core.text.whole_number import whole_number
from gpushare_operator.backends.extender_workload.daemon_set import HOST_FOLDER
from gpushare_operator.backends.kube_scheduler.hostctl_job import (
    NEEDS_PERSON,
    ROLLED_BACK,
    HostctlCommand,
    HostctlRun,
    Occasion,
)
from gpushare_operator.cluster.object_parts import read_time
from gpushare_operator.cluster.objects import JobObject, NodeObject, PodObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot

FIRST_BACKOFF = timedelta(seconds=5)
MAX_BACKOFF = timedelta(minutes=5)
KEYS_LOOKED_AT_AFTER = timedelta(days=100)
"""After a run that did not report when. Keys last a year; an install renews them in the last third of it."""
KEYS_LEFT_ALONE = timedelta(days=1)
"""After a run, whatever it reported: a host's clock may be wrong."""
NEVER = datetime.min.replace(tzinfo=UTC)
EDIT_VISIBLE_AFTER = timedelta(minutes=1)
"""After a successful install the kubelet shows the edited manifest, whose kube-scheduler serves by then."""


class HistoryState(StrEnum):
    """How far a node is with a command."""

    DONE = "done"
    RUNNING = "running"
    DUE = "due"
    RENEWAL = "renewal"
    """The edit is in force, and is to be made again, because keys run out or kube-scheduler was restarted."""
    BACKOFF = "backoff"
    """The last attempt failed; the next one comes later."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of hostctl. Its pod may be gone."""

    job: JobObject
    pod: PodObject | None

    @property
    def exit_code(self) -> int | None:
        code = self.pod.exit_code if self.pod else None
        return self.job.exit_code if code is None else code

    @property
    def needs_person(self) -> bool:
        return self.exit_code == NEEDS_PERSON

    @property
    def rolled_back(self) -> bool:
        return self.exit_code == ROLLED_BACK and self.job.command == HostctlCommand.INSTALL

    @property
    def report(self) -> Json:
        """Returns what hostctl reported; empty when it left nothing that can be read."""
        try:
            report = json.loads(self.pod.termination) if self.pod else {}
        except UNREADABLE_JSON:
            return {}
        return report if isinstance(report, dict) else {}

    @property
    def renew_after(self) -> datetime | None:
        """Returns when the host's keys are to be renewed; None while the run is under way."""
        finished = self.job.finished
        if finished is None:
            return self.job.renew_after
        said = read_time(self.report.get("renewAfter")) or self.job.renew_after
        if said is None or (self.job.complete and said <= finished):
            said = finished + KEYS_LOOKED_AT_AFTER
        return max(said, finished + KEYS_LEFT_ALONE) if self.job.complete else said

    @property
    def rolled_back_inputs(self) -> str:
        """Returns what hostctl found when it undid the edit; empty when nobody knows any more."""
        return str(self.report.get("inputs") or self.job.rolled_back_inputs) if self.rolled_back else ""


@dataclass(frozen=True, slots=True)
class JobHistory:
    """The runs on one node, compared with the one that is asked for."""

    node: NodeObject
    run: HostctlRun
    state: HistoryState
    last: Attempt | None = None
    retry_after: float = 0.0
    """Seconds until the next attempt, in state BACKOFF; infinite where none comes by itself."""
    is_new: bool = False
    """Whether the next attempt has other inputs than the last one, or a person has asked for it."""
    has_drifted: bool = False
    """Whether kube-scheduler runs without the edit that was made."""

    @property
    def next_sequence(self) -> int:
        """Where no Job is left the node's mark has the number of one."""
        if self.last:
            return self.last.job.sequence + 1
        return max(1, whole_number(self.node.labels.get(SCHEDULER_LABEL, "")))

    @property
    def failure(self) -> Attempt | None:
        """Returns the last attempt, if it failed at this command on this Node."""
        last = self.last
        return last if last and last.job.failed and _is_of(last.job, self.node, self.run.command) else None

    @property
    def is_connected(self) -> bool:
        """Whether the desired edit is in force."""
        return self.state in (HistoryState.DONE, HistoryState.RENEWAL)

    @property
    def occasion(self) -> Occasion:
        """Returns what the next attempt is to know. With inputs that were rolled back it touches the host
        only if one of them has changed; an attempt that is new anyway gets none."""
        failure = self.failure
        return Occasion(
            rolled_back_inputs="" if failure is None or self.is_new else failure.rolled_back_inputs,
            renew_after=self.last.renew_after if self.last else None,
            has_drifted=self.has_drifted,
        )


def read_history(snapshot: ClusterSnapshot, node: NodeObject, run: HostctlRun, now: datetime) -> JobHistory:
    job = last_job(snapshot, node.name)
    if job is None:
        return JobHistory(node, run, HistoryState.DUE)
    last = Attempt(_as_it_counts(job, node), snapshot.pod_of_job(job.name))
    is_new = _is_new(last, run, now) or _was_put_back(snapshot, last)
    retry_after = 0.0 if is_new else _retry_after(last, node, run, now)
    history = JobHistory(node, run, _state(last.job, node, run, retry_after), last, retry_after, is_new)
    if history.state is not HistoryState.DONE or run.command is HostctlCommand.RESTORE:
        return history
    if _has_lost_edit(snapshot, last.job, run.scheduler_image):
        return _repair(history, last.job, now)
    has_old_keys = last.renew_after is not None and now > last.renew_after
    is_due = has_old_keys or _was_restarted(snapshot, last.job, now)
    return replace(history, state=HistoryState.RENEWAL) if is_due else history


def _as_it_counts(job: JobObject, node: NodeObject) -> JobObject:
    """Returns the Job as failed if Kubernetes has given it up and no kubelet is there to say that the pod has
    ended: hostctl itself has ended before the deadline."""
    return replace(job, failed=True) if job.failing and not node.ready else job


def hosts_at_work(snapshot: ClusterSnapshot) -> set[str]:
    """Returns the hosts on which hostctl may be at work, with or without their labels or their Node."""
    jobs = (job for name in snapshot.jobs_by_node if (job := last_job(snapshot, name)) and job.active)
    nodes = snapshot.nodes
    # A Job that Kubernetes has given up does not count where no kubelet can say that its pod has ended.
    return {job.node for job in jobs if not job.failing or ((node := nodes.get(job.node)) and node.ready)}


def is_done(snapshot: ClusterSnapshot, node: NodeObject, command: HostctlCommand) -> bool:
    job = last_job(snapshot, node.name)
    return job is not None and job.complete and _is_of(job, node, command)


def last_job(snapshot: ClusterSnapshot, node: str) -> JobObject | None:
    """Returns the last attempt on the host of that name. A Job that is being deleted counts until it is gone:
    its pod may still run, and its name is taken."""
    return next(reversed(snapshot.jobs_by_node.get(node, [])), None)


def earliest_retry(histories: Iterable[JobHistory]) -> float | None:
    """Returns the seconds until the first backoff ends; None when none ends by itself."""
    delays = [history.retry_after for history in histories if history.state is HistoryState.BACKOFF]
    return min((delay for delay in delays if isfinite(delay)), default=None)


def _state(job: JobObject, node: NodeObject, run: HostctlRun, retry_after: float) -> HistoryState:
    if job.active:
        return HistoryState.RUNNING
    if retry_after > 0:
        return HistoryState.BACKOFF
    return HistoryState.DONE if _has_done(job, node, run) else HistoryState.DUE


def _has_done(job: JobObject, node: NodeObject, run: HostctlRun) -> bool:
    if not (job.complete and _is_of(job, node, run.command)):
        return False
    # An edit that would be another one now has to be made again; restoring is always the same.
    return run.command is HostctlCommand.RESTORE or job.spec_hash == run.work_hash


def _has_lost_edit(snapshot: ClusterSnapshot, job: JobObject, image: str) -> bool:
    """Returns whether, long enough after the edit, the host's kubelet shows kube-schedulers and none with our
    configuration and ``image``: an upgrade of the control plane writes the manifest anew, and some tools
    write the image alone. No other image starts with a configuration that names our plugin.

    ``image``: empty where kube-scheduler keeps its own.
    """
    shown = [scheduler for scheduler in snapshot.schedulers.values() if scheduler.node == job.node]
    has_ours = any(
        scheduler.config.startswith(f"{HOST_FOLDER}/") and image in ("", scheduler.image)
        for scheduler in shown
    )
    if not shown or job.finished is None or has_ours:
        return False
    return min(scheduler.seen for scheduler in shown) - job.finished >= EDIT_VISIBLE_AFTER


def _repair(history: JobHistory, job: JobObject, now: datetime) -> JobHistory:
    """If a repair did not help, another one is no hurry."""
    waits = MAX_BACKOFF - (now - job.finished) if job.has_drifted and job.finished else timedelta()
    if waits > timedelta():
        later = waits.total_seconds()
        return replace(history, state=HistoryState.BACKOFF, retry_after=later, has_drifted=True)
    return replace(history, state=HistoryState.DUE, has_drifted=True)


def _was_restarted(snapshot: ClusterSnapshot, job: JobObject, now: datetime) -> bool:
    """Returns whether a kube-scheduler of the host started after hostctl's run. It may have read another
    ``--config`` file of its own, which ours has to follow and which only hostctl sees. If it is restarted all
    the time, that is no hurry."""
    if job.finished is None or now - job.finished < MAX_BACKOFF:
        return False
    return _latest_start(snapshot, job.node) > job.finished


def _latest_start(snapshot: ClusterSnapshot, host: str) -> datetime:
    starts = (scheduler.started for scheduler in snapshot.schedulers.values() if scheduler.node == host)
    return max((start for start in starts if start), default=NEVER)


def _was_put_back(snapshot: ClusterSnapshot, last: Attempt) -> bool:
    """Returns whether a kube-scheduler started after a restoration that needed a person: its manifest may be
    there again."""
    job = last.job
    needed_person = job.command == HostctlCommand.RESTORE and job.failed and last.needs_person
    if job.finished is None or not needed_person:
        return False
    return _latest_start(snapshot, job.node) > job.finished


def _is_of(job: JobObject, node: NodeObject, command: HostctlCommand) -> bool:
    return job.node_uid == node.uid and job.command == command


def _is_new(last: Attempt, run: HostctlRun, now: datetime) -> bool:
    """Returns whether ``run`` has other inputs than the last attempt, or a person has asked for it since. New
    keys are another input: they are tried once, however the edit with the former ones ended."""
    job, renew_after = last.job, last.renew_after
    asked = job.inputs_hash != run.inputs_hash or not run.settings.asked <= job.asked
    return asked or (
        job.finished is not None and renew_after is not None and job.finished < renew_after < now
    )


def _retry_after(last: Attempt, node: NodeObject, run: HostctlRun, now: datetime) -> float:
    if not (last.job.failed and _is_of(last.job, node, run.command)):
        return 0.0
    if last.rolled_back and not last.rolled_back_inputs:
        return float("inf")
    # The delay doubles with each attempt.
    backoff = min(FIRST_BACKOFF * (1 << min(max(last.job.sequence - 1, 0), 10)), MAX_BACKOFF)
    if last.needs_person or last.rolled_back:
        backoff = MAX_BACKOFF
    return max(0.0, ((last.job.finished or now) + backoff - now).total_seconds())
