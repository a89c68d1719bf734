"""How messages name many things: they list a few and count the rest."""

from collections.abc import Iterable, Mapping
from heapq import nsmallest

DEFECT = "a defect of the operator, see its log"
MAX_SHOWN = 5
"""Names in a message; a cluster can have thousands."""


def listed(names: Iterable[str]) -> str:
    """Returns ``a, b, c and 4 more``."""
    all_names = list(names)
    return _shortened(", ".join(nsmallest(MAX_SHOWN, all_names)), len(all_names))


def explained(reasons: Mapping[str, str]) -> str:
    """Returns ``a: why; b: why and 4 more``, the rest without their reasons."""
    shown = "; ".join(f"{name}: {reasons[name]}" for name in nsmallest(MAX_SHOWN, reasons))
    return _shortened(shown, len(reasons))


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortened(shown: str, number: int) -> str:
    return f"{shown} and {number - MAX_SHOWN} more" if number > MAX_SHOWN else shown
