"""A problem: what it is about, what is wrong, and what to type next."""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from gpushare_cli.wording import MAX_SHOWN

NAMES = "{names}"
"""In a command: the first names of the group, with blanks between."""
NAME = "{name}"
"""In a command: the first name of the group."""


class Severity(StrEnum):
    """Worst first."""

    ERROR = "error"
    """Pods get no units, or cards are given away wrongly."""
    WARNING = "warning"
    """Something does not work as it was asked for; what runs goes on."""
    NOTE = "note"
    """Nothing is broken: something that people did or wait for, and may have forgotten."""


class StatusProblem(Struct, frozen=True, kw_only=True, rename="camel"):
    severity: Severity
    reason: str
    """A word for programs, as conditions have it."""
    kind: str
    """Of ``names``: ``policy``, ``node``, ``card``, ``pod``; ``cluster`` has no names."""
    names: tuple[str, ...] = ()
    sentence: str
    """Without the names: it is true of each of them."""
    detail: str = ""
    """What the cluster itself says, of the first name."""
    command: str = ""
    policy: str = ""
    """To which it belongs, where it belongs to one."""


def grouped(problems: Iterable[StatusProblem]) -> list[StatusProblem]:
    """Returns the problems worst first, those of many objects as one with all their names."""
    order = list(Severity)
    ordered = sorted(problems, key=lambda problem: (order.index(problem.severity), _group(problem)))
    return [_merged(list(same)) for _, same in groupby(ordered, key=_group)]


def _group(problem: StatusProblem) -> tuple[str, ...]:
    return (problem.severity, problem.kind, problem.reason, problem.sentence, problem.policy)


def _merged(same: Sequence[StatusProblem]) -> StatusProblem:
    first = same[0]
    names = tuple(name for problem in same for name in problem.names)
    shown = " ".join(names[:MAX_SHOWN])
    command = first.command.replace(NAMES, shown).replace(NAME, names[0] if names else "")
    return replace(first, names=names, command=command)
