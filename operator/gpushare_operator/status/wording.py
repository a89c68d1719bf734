"""Lists of names in messages."""

from collections.abc import Iterable, Mapping

SHOWN = 5
"""Names that a message spells out; a cluster can have thousands."""


def listed(names: Iterable[str]) -> str:
    """``a, b, c and 4 more``."""
    every = sorted(names)
    rest = len(every) - SHOWN
    shown = ", ".join(every[:SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown


def explained(reasons: Mapping[str, str]) -> str:
    """``a: why; b: why and 4 more``, the rest without their reasons."""
    every = sorted(reasons.items())
    rest = len(every) - SHOWN
    shown = "; ".join(f"{name}: {why}" for name, why in every[:SHOWN])
    return f"{shown} and {rest} more" if rest > 0 else shown


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
