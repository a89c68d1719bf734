"""The runs of hostctl on one node, read as a journal: its last entry says what was done to the scheduler.

A Job is created before the node is touched and deleted after it was restored. Somebody else may delete it
earlier, so a node without an entry tells nothing, and whatever is wanted is due: both runs may be repeated.
Entries are numbered through; an entry goes only when a later one exists.

::

    (none) --install--> active --> complete (edited)
                            \\--> failed ----wait----> next install
    any finished install --restore--> active --> complete (as before)
                                          \\--> failed --wait--> next restore
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from gpushare_operator.cluster.objects import JobView, NodeView, PodView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.desired.hostctl_job import Action, work_hash

FIRST_WAIT = timedelta(seconds=5)
LONGEST_WAIT = timedelta(minutes=5)

NEEDS_PERSON = 2
"""Exit code of hostctl: trying again will not help by itself."""


class Standing(StrEnum):
    """What the journal says of a node, compared with what is wanted."""

    DONE = "done"
    BUSY = "busy"
    DUE = "due"
    RESTING = "resting"
    """Failed; the next try comes after a pause."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where one node stands."""

    node: NodeView
    wanted: Action
    standing: Standing
    job: JobView | None = None
    pod: PodView | None = None
    next_sequence: int = 1
    rest: float = 0.0
    """Seconds until the next try, when resting."""

    @property
    def needs_person(self) -> bool:
        return self.job is not None and self.job.failed and _exit_code(self.pod) == NEEDS_PERSON


def read_journal(snapshot: Snapshot, node: NodeView, wanted: Action, now: datetime) -> Entry:
    """Judge ``node`` by the last entry of its journal."""
    entries = valid_entries(snapshot, node)
    if not entries:
        return Entry(node, wanted, Standing.DUE)
    last = entries[-1]
    pod = snapshot.job_pod(last.name)
    rest = _rest(last, pod, now) if last.action == wanted and last.failed else 0.0
    return Entry(node, wanted, _standing(last, wanted, rest), last, pod, last.sequence + 1, rest)


def valid_entries(snapshot: Snapshot, node: NodeView) -> list[JobView]:
    """Entries about this very node, not about a former one of the same name."""
    return [job for job in snapshot.journal(node.name) if job.node_uid == node.uid and not job.deleting]


def _standing(last: JobView, wanted: Action, rest: float) -> Standing:
    if last.active:
        return Standing.BUSY
    if last.action == wanted and last.failed:
        return Standing.RESTING if rest > 0 else Standing.DUE
    is_done = last.action == wanted and (wanted is Action.RESTORE or last.spec_hash == work_hash(wanted))
    return Standing.DONE if is_done else Standing.DUE


def _rest(last: JobView, pod: PodView | None, now: datetime) -> float:
    """Doubles with each try: the sequence number tells how many there were."""
    wait = min(FIRST_WAIT * (1 << min(max(last.sequence - 1, 0), 10)), LONGEST_WAIT)
    if _exit_code(pod) == NEEDS_PERSON:
        wait = LONGEST_WAIT
    since = last.finished or now
    return max(0.0, (since + wait - now).total_seconds())


def _exit_code(pod: PodView | None) -> int | None:
    return pod.exit_code if pod else None
