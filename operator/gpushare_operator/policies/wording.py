"""What a message says: the first check that fails; of many things it names a few and counts the rest."""

from collections.abc import Callable, Iterable, Mapping
from heapq import nsmallest
from typing import TypeVar

Subject = TypeVar("Subject")
Failure = TypeVar("Failure")

DEFECT = "a defect of the operator, see its log"
SHOWN = 5
"""Names that a message spells out; a cluster can have thousands."""


def first_failure(checks: Iterable[Callable[[Subject], Failure | None]], subject: Subject) -> Failure | None:
    """Returns what the first check says that finds something; None when all pass."""
    return next((failure for check in checks if (failure := check(subject))), None)


def listed(names: Iterable[str]) -> str:
    """Returns ``a, b, c and 4 more``."""
    all_names = list(names)
    return _shortened(", ".join(nsmallest(SHOWN, all_names)), len(all_names))


def explained(reasons: Mapping[str, str]) -> str:
    """Returns ``a: why; b: why and 4 more``, the rest without their reasons."""
    shown = "; ".join(f"{name}: {reasons[name]}" for name in nsmallest(SHOWN, reasons))
    return _shortened(shown, len(reasons))


def counted(number: int, noun: str) -> str:
    """Returns ``1 node`` or ``2 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortened(shown: str, number: int) -> str:
    return f"{shown} and {number - SHOWN} more" if number > SHOWN else shown
