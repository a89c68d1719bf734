"""Growing delays with jitter between attempts."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace

Jitter = Callable[[], float]
"""Returns a number from 0 to 1."""

BOOKKEEPING_RETRY = 4.0
"""Longest delay, in seconds, of whatever keeps one of the four books: they agree within 5 s after a fault
ends."""
_MAX_DOUBLINGS = 16


def backoff_delay(failures: int, *, first: float, most: float) -> float:
    """Returns the seconds to wait after ``failures`` failed attempts: ``first`` after one, twice as long
    after each further one, at most ``most``."""
    if failures <= 0:
        return 0.0
    return min(most, first * float(1 << min(failures - 1, _MAX_DOUBLINGS)))


def jittered(delay: float, jitter: Jitter) -> float:
    """Returns a delay from half of ``delay`` to all of it, so that many clients do not come back together."""
    return delay * (0.5 + jitter() / 2)


def heeding(least: float, delay: float, jitter: Jitter) -> float:
    """Returns ``delay``, or the longer one that a server asks for: ``least`` seconds and up to half as much
    again, because it asks many clients at once."""
    return max(delay, least * (1.0 + jitter() / 2)) if least else delay


@dataclass(slots=True)
class Backoff:
    """The delays of one caller, in seconds. ``sleep`` and ``jitter`` are replaced in tests."""

    first: float = 0.2
    most: float = 10.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    jitter: Jitter = random.random
    _failures: int = field(default=0, init=False)

    def __iter__(self) -> Iterator[float]:
        """Yields delays without end, beginning with the first."""
        fresh = replace(self)
        while True:
            yield fresh.next_delay()

    def reset(self) -> None:
        """After a success: the next delay is the first one again."""
        self._failures = 0

    def next_delay(self, least: float = 0.0) -> float:
        """Counts a failed attempt and returns the seconds to wait, not less than ``least``."""
        self._failures += 1
        own = jittered(backoff_delay(self._failures, first=self.first, most=self.most), self.jitter)
        return heeding(least, own, self.jitter)

    async def wait(self, least: float = 0.0) -> None:
        """Counts a failed attempt and waits, not less than ``least`` seconds."""
        await self.sleep(self.next_delay(least))
