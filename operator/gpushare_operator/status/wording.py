"""How messages name many things: they list a few and count the rest."""

from collections.abc import Iterable, Mapping

DEFECT = "a defect of the operator, see its log"
SHOWN = 5
"""Names that a message spells out; a cluster can have thousands."""


def listed(names: Iterable[str]) -> str:
    """Returns ``a, b, c and 4 more``."""
    in_order = sorted(names)
    return _shortened(", ".join(in_order[:SHOWN]), len(in_order))


def explained(reasons: Mapping[str, str]) -> str:
    """Returns ``a: why; b: why and 4 more``, the rest without their reasons."""
    in_order = sorted(reasons.items())
    shown = "; ".join(f"{name}: {why}" for name, why in in_order[:SHOWN])
    return _shortened(shown, len(in_order))


def counted(number: int, noun: str) -> str:
    """Returns ``1 node`` or ``2 nodes``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortened(shown: str, number: int) -> str:
    return f"{shown} and {number - SHOWN} more" if number > SHOWN else shown
