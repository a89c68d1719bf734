"""What stands beside the map: pods that wait, problems, and how fresh all of it is."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from gpushare_cli.decide.objects.unplaced_pod import UnplacedPod
from gpushare_cli.decide.problems.facts import OTHERS_PENDING_PODS, PENDING_PODS, StatusFacts
from gpushare_cli.decide.problems.problem import StatusProblem

if TYPE_CHECKING:
    from gpushare_cli.decide.objects.pending_pod import PendingPod

MAX_PODS = 2_000
"""Pods that wait, in the list; their number is of all."""
MAX_NAMES = 50
"""Of what a problem is about; their number is of all."""


class PageWaitingPod(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    namespace: str
    name: str
    since: str = ""
    """RFC 3339."""
    asks: Mapping[str, int | None] = {}
    """Resource -> units; None where the resource is not one of ours."""
    reason: str = ""
    """By kube-scheduler."""


class WaitingList(Struct, frozen=True, kw_only=True, rename="camel"):
    total: int
    pods: Sequence[PageWaitingPod]
    """The oldest first."""


class PageProblem(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """As ``StatusProblem``."""

    severity: str
    reason: str
    kind: str
    sentence: str
    total: int = 0
    """How many names it has."""
    names: Sequence[str] = ()
    detail: str = ""
    command: str = ""


class Trouble(StrEnum):
    """Why the figures are not of now."""

    LOGIN = "Login"
    """The login has expired."""
    UNREACHABLE = "Unreachable"
    """The API server is."""
    UNREAD = "Unread"
    """The API server answers, and does not show GPUShareNodes."""
    LATE = "Late"
    """A round of reading takes long."""
    PAUSED = "Paused"
    """Nobody has looked."""


class Freshness(Struct, frozen=True, kw_only=True, rename="camel"):
    """Whether the figures are of now."""

    read_at: str = ""
    """RFC 3339: when all was read last; empty: never yet."""
    trouble: str = ""
    """Empty: none. Else a ``Trouble``: the figures are of ``read_at``, and old."""
    message: str = ""
    """What went wrong, and what to do."""


class PagePart(StrEnum):
    """What of the page may be incomplete."""

    WAITING = "waiting"
    PROBLEMS = "problems"


class PageTitle(Struct, frozen=True, kw_only=True, rename="camel"):
    server: str
    version: str
    """Of this client."""
    group_labels: Sequence[str] = ()
    rack_label: str = ""
    """By which nodes are grouped unless somebody chooses otherwise."""
    unread: Sequence[str] = ()
    """Sentences: what could not be read, and what is therefore not known."""
    incomplete: Sequence[str] = ()
    """Parts in which something may be missing for that: each a ``PagePart``."""


def incomplete_parts(facts: StatusFacts) -> list[str]:
    """Any part that is not read may hide a problem."""
    waiting = [] if facts.has_read(PENDING_PODS, OTHERS_PENDING_PODS) else [PagePart.WAITING]
    return [*waiting, PagePart.PROBLEMS] if facts.unread else []


def waiting_list(unplaced: Iterable[UnplacedPod], pending: "Iterable[PendingPod]") -> WaitingList:
    known = {f"{pod.metadata.namespace}/{pod.metadata.name}": pod for pod in pending}
    pods = [pod for pod in unplaced if pod.wanted]
    pods.sort(key=lambda pod: (pod.metadata.creation_timestamp, pod.name))
    shown = [_waiting(pod, known.get(pod.name)) for pod in pods[:MAX_PODS]]
    return WaitingList(total=len(pods), pods=shown)


def _waiting(pod: UnplacedPod, known: "PendingPod | None") -> PageWaitingPod:
    units = {asked.name: asked.total for asked in known.request.resources} if known else {}
    return PageWaitingPod(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        since=pod.metadata.creation_timestamp,
        asks={name: units.get(name) for name in sorted(pod.wanted)},
        reason=known.reason if known else "",
    )


def page_problem(problem: StatusProblem) -> PageProblem:
    return PageProblem(
        severity=problem.severity,
        reason=problem.reason,
        kind=problem.kind,
        sentence=problem.sentence,
        total=len(problem.names),
        names=problem.names[:MAX_NAMES],
        detail=problem.detail,
        command=problem.command,
    )
