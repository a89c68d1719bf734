"""Doing something for many items with a bounded number at a time, and describing many numbers."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[object]], *, workers: int = 32) -> None:
    """Run ``work`` for every item; the first failure ends it."""
    source = iter(items)

    async def worker() -> None:
        for item in source:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles by nearest rank, in the unit of the numbers."""

    p50: float
    p99: float
    most: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> "Spread":
        """``numbers`` must not be empty."""
        ordered = sorted(numbers)
        return cls(_percentile(ordered, 0.50), _percentile(ordered, 0.99), ordered[-1])


def _percentile(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, math.ceil(len(ordered) * share) - 1)]
