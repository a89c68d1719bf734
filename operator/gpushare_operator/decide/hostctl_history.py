"""The Job history of one node: hostctl's runs on it say what was done to its kube-scheduler.

A Job is created before the node is touched and deleted after it was restored. Somebody else may delete it
earlier, so a node without a Job says nothing, and the command that is asked for is due: each may be repeated.
Attempts are numbered through; one goes only when a later one exists.

What was edited are files of a host, and a host is known by its node's name: its Node object may be made anew
at any time. So a history outlives the Node; only whether all is done is asked again of a Node with another
UID, for it may be another machine.

::

    (none) --install--> running --> complete (edited)
                            \\--> failed ---backoff---> next install
    any finished install --restore--> running --> complete (as before)
                                          \\--> failed --backoff--> next restore
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gpushare_operator.cluster.objects import JobObject, NodeObject, PodObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.desired.hostctl_job import HostctlCommand, work_hash

FIRST_BACKOFF = timedelta(seconds=5)
LONGEST_BACKOFF = timedelta(minutes=5)

NEEDS_PERSON = 2
"""Exit code of hostctl: trying again will not help by itself."""


class HistoryState(StrEnum):
    """How far a node is with a command."""

    DONE = "done"
    RUNNING = "running"
    DUE = "due"
    BACKOFF = "backoff"
    """The last attempt failed; the next one comes later."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One run of hostctl. Its pod may be gone."""

    job: JobObject
    pod: PodObject | None

    @property
    def needs_person(self) -> bool:
        return self.pod is not None and self.pod.exit_code == NEEDS_PERSON


@dataclass(frozen=True, slots=True)
class JobHistory:
    """The runs on one node, compared with the command that is asked for."""

    node: NodeObject
    command: HostctlCommand
    state: HistoryState
    last: Attempt | None = None
    retry_after: float = 0.0
    """Seconds until the next attempt, in state BACKOFF."""

    @property
    def next_sequence(self) -> int:
        return self.last.job.sequence + 1 if self.last else 1

    @property
    def failure(self) -> Attempt | None:
        """Returns the last attempt, if it failed at this very command."""
        last = self.last
        return last if last and last.job.failed and last.job.command == self.command else None


def read_history(snapshot: Snapshot, node: NodeObject, command: HostctlCommand, now: datetime) -> JobHistory:
    """Returns how far ``node`` is with ``command``: its last attempt decides."""
    job = last_job(snapshot, node.name)
    if job is None:
        return JobHistory(node, command, HistoryState.DUE)
    last = Attempt(job, snapshot.pod_of_job(job.name))
    retry_after = _retry_after(last, now) if job.failed and _is_of(job, node, command) else 0.0
    return JobHistory(node, command, _state(job, node, command, retry_after), last, retry_after)


def is_done(snapshot: Snapshot, node: NodeObject, command: HostctlCommand) -> bool:
    """Returns whether the last attempt on ``node`` was ``command``, and succeeded."""
    job = last_job(snapshot, node.name)
    return job is not None and _has_done(job, node, command)


def last_job(snapshot: Snapshot, node: str) -> JobObject | None:
    """Returns the last attempt on the host of that name. One that is being deleted counts until it is gone:
    its pod may still run, and its name is taken."""
    return next(reversed(snapshot.jobs_by_node.get(node, [])), None)


def earliest_retry(histories: Iterable[JobHistory]) -> float | None:
    """Returns the seconds until the first backoff ends; None when there is none."""
    delays = (history.retry_after for history in histories if history.state is HistoryState.BACKOFF)
    return min(delays, default=None)


def _state(job: JobObject, node: NodeObject, command: HostctlCommand, retry_after: float) -> HistoryState:
    if job.active:
        return HistoryState.RUNNING
    if retry_after > 0:
        return HistoryState.BACKOFF
    return HistoryState.DONE if _has_done(job, node, command) else HistoryState.DUE


def _has_done(job: JobObject, node: NodeObject, command: HostctlCommand) -> bool:
    if not (job.complete and _is_of(job, node, command)):
        return False
    # An edit that this version would make otherwise has to be made again; restoring is always the same.
    return command is HostctlCommand.RESTORE or job.spec_hash == work_hash(command)


def _is_of(job: JobObject, node: NodeObject, command: HostctlCommand) -> bool:
    return job.node_uid == node.uid and job.command == command


def _retry_after(last: Attempt, now: datetime) -> float:
    """Returns seconds; they double with each attempt, and the sequence number says how many there were."""
    backoff = min(FIRST_BACKOFF * (1 << min(max(last.job.sequence - 1, 0), 10)), LONGEST_BACKOFF)
    if last.needs_person:
        backoff = LONGEST_BACKOFF
    finished = last.job.finished or now
    return max(0.0, (finished + backoff - now).total_seconds())
