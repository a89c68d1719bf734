"""Percentiles of measured numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Percentiles:
    """By nearest rank, in the unit of the numbers."""

    p50: float
    p99: float
    highest: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Percentiles":
        """``numbers`` must not be empty."""
        ordered = sorted(numbers)
        return cls(_percentile(ordered, 0.50), _percentile(ordered, 0.99), ordered[-1])


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]
