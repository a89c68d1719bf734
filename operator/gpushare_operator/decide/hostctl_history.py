"""The Job history of one node: hostctl's runs on it say what was done to its kube-scheduler.

A Job is created before the node is touched and deleted after it was restored. Somebody else may delete it
earlier, so a node without a Job says nothing, and the command that is asked for is due: each may be repeated.
Attempts are numbered through; one goes only when a later one exists.

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
    attempts = valid_attempts(snapshot, node)
    if not attempts:
        return JobHistory(node, command, HistoryState.DUE)
    last = Attempt(attempts[-1], snapshot.pod_of_job(attempts[-1].name))
    retry_after = _retry_after(last, now) if last.job.failed and last.job.command == command else 0.0
    return JobHistory(node, command, _state(last.job, command, retry_after), last, retry_after)


def is_done(snapshot: Snapshot, node: NodeObject, command: HostctlCommand) -> bool:
    """Returns whether the last attempt on ``node`` was ``command``, and succeeded."""
    attempts = valid_attempts(snapshot, node)
    return bool(attempts) and _has_done(attempts[-1], command)


def valid_attempts(snapshot: Snapshot, node: NodeObject) -> list[JobObject]:
    """Returns the attempts on this very node, not on a former one of the same name; the oldest first."""
    jobs = snapshot.jobs_by_node.get(node.name, ())
    return [job for job in jobs if job.node_uid == node.uid and not job.deleting]


def earliest_retry(histories: Iterable[JobHistory]) -> float | None:
    """Returns the seconds until the first backoff ends; None when there is none."""
    delays = (history.retry_after for history in histories if history.state is HistoryState.BACKOFF)
    return min(delays, default=None)


def _state(last: JobObject, command: HostctlCommand, retry_after: float) -> HistoryState:
    if last.active:
        return HistoryState.RUNNING
    if retry_after > 0:
        return HistoryState.BACKOFF
    return HistoryState.DONE if _has_done(last, command) else HistoryState.DUE


def _has_done(job: JobObject, command: HostctlCommand) -> bool:
    if not job.complete or job.command != command:
        return False
    # An edit that this version would make otherwise has to be made again; restoring is always the same.
    return command is HostctlCommand.RESTORE or job.spec_hash == work_hash(command)


def _retry_after(last: Attempt, now: datetime) -> float:
    """Returns seconds; they double with each attempt, and the sequence number says how many there were."""
    backoff = min(FIRST_BACKOFF * (1 << min(max(last.job.sequence - 1, 0), 10)), LONGEST_BACKOFF)
    if last.needs_person:
        backoff = LONGEST_BACKOFF
    finished = last.job.finished or now
    return max(0.0, (finished + backoff - now).total_seconds())
