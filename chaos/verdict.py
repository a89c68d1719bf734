"""Checks the figures of a whole run: whether it has really looked, and what our processes cost (pure)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from chaos.findings import Finding
from chaos.record import Record

MEMORY_LIMITS = {"plugin": 256.0, "extender": 512.0, "operator": 512.0, "hostctl": 128.0}
"""Container -> MiB of its limit in the manifest, which the local cluster does not enforce."""
LOOKS = 5
"""So many looks in a row at a process that grows are no coincidence."""
GROWTH = 40.0
"""MiB of growth that count."""
MAX_UNREADABLE = 0.5
"""Share of readings that may fail: the API server is away for seconds at a time."""


def verdict(
    record: Record, *, readings: int, unreadable: int, memory: Mapping[str, Sequence[float]]
) -> Iterator[Finding]:
    """Yields what the figures say that must not be. ``readings``: those that succeeded; ``memory``: see
    ``Footprint``."""
    for sentence in record.in_vain():
        yield Finding(rule="run", sentence=sentence)
    if unreadable > MAX_UNREADABLE * (readings + unreadable) or not readings:
        sentence = f"the books were read {readings} times and could not be read {unreadable} times"
        yield Finding(rule="run", sentence=f"{sentence}: what differed meanwhile was not seen")
    for process, sizes in memory.items():
        yield from _of_process(process, sizes)


def _of_process(process: str, sizes: Sequence[float]) -> Iterator[Finding]:
    limit = MEMORY_LIMITS.get(process.partition(" ")[0])
    if limit and max(sizes, default=0.0) > limit:
        yield Finding(rule="memory", sentence=f"{process} had {max(sizes):.0f} MiB, its limit is {limit:.0f}")
    elif grown := growth(sizes):
        yield Finding(rule="memory", sentence=f"{process} grew by {grown:.0f} MiB in {LOOKS} looks in a row")


def growth(sizes: Sequence[float]) -> float:
    """Returns the MiB by which a process grew in ``LOOKS`` looks in a row, 0 where it did not.

    A restart counts as a fall. The first of the rising sizes does not count: the process may just have been
    starting.
    """
    windows = (sizes[start : start + LOOKS + 1] for start in range(len(sizes) - LOOKS))
    rising = (window for window in windows if all(a < b for a, b in pairwise(window)))
    most = max((values[-1] - values[1] for values in rising), default=0.0)
    return most if most > GROWTH else 0.0
