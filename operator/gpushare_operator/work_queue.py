"""One queue of keys for level-based work: no key twice, failures again after a growing pause, for ever."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

_log = logging.getLogger(__name__)

Work = Callable[[str], Awaitable[float | None]]
"""Gets a key; returns after how many seconds it wants to be called again by itself, if at all."""

BEAT = 15.0
"""Seconds after which an idle queue still shows that it lives."""


@dataclass(slots=True)
class WorkQueue:
    """Runs ``work`` for one key at a time. ``clock`` gives monotonic seconds."""

    work: Work
    clock: Callable[[], float]
    jitter: Callable[[], float] = random.random
    settle: float = 0.1
    """Seconds in which further news of the same key are taken together."""
    first_pause: float = 0.5
    longest_pause: float = 60.0
    beaten: float = field(default=0.0, init=False)
    """When the queue last showed that it lives."""
    _due: dict[str, float] = field(default_factory=dict, init=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False)
    _news: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def add(self, key: str, *, delay: float | None = None) -> None:
        """Work on ``key`` after ``delay`` seconds (default ``settle``), or earlier if that is planned."""
        due = self.clock() + (self.settle if delay is None else delay)
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._news.set()

    async def run(self) -> None:
        """Never ends by itself, whatever ``work`` raises."""
        while True:
            self.beaten = self.clock()
            key = self._next_due()
            if key is None:
                await self._wait()
            else:
                await self._work_on(key)

    def _next_due(self) -> str | None:
        due = [(moment, key) for key, moment in self._due.items() if moment <= self.clock()]
        return min(due)[1] if due else None

    async def _wait(self) -> None:
        pause = min([BEAT, *(moment - self.clock() for moment in self._due.values())])
        self._news.clear()
        try:
            await asyncio.wait_for(self._news.wait(), max(pause, 0.0))
        except TimeoutError:
            return

    async def _work_on(self, key: str) -> None:
        del self._due[key]
        try:
            again = await self.work(key)
        except Exception:
            self._retry(key)
            return
        self._failures.pop(key, None)
        if again is not None:
            self.add(key, delay=again)

    def _retry(self, key: str) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        ceiling = min(self.longest_pause, self.first_pause * 2 ** min(failures - 1, 16))
        pause = ceiling * (0.5 + self.jitter() / 2)
        _log.warning("%s failed %d times, again in %.1f s", key, failures, pause, exc_info=failures == 1)
        self.add(key, delay=pause)
