"""One queue of keys for level-based work: no key twice, failures again after a growing delay, for ever."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gpushare_core.kube.backoff import Jitter, backoff_delay, jittered

_log = logging.getLogger(__name__)

Work = Callable[[str], Awaitable[float | None]]
"""Gets a key; returns after how many seconds it wants to be called again by itself, if at all."""

BEAT_SECONDS = 15.0
"""After which an idle queue still shows that it lives."""


@dataclass(slots=True)
class WorkQueue:
    """Works on one key at a time. ``clock`` gives monotonic seconds; so are all durations."""

    clock: Callable[[], float]
    jitter: Jitter = random.random
    debounce: float = 0.1
    """Further changes of the same key within this time are taken together."""
    first_backoff: float = 0.5
    longest_backoff: float = 60.0
    is_running: bool = field(default=False, init=False)
    last_beat: float = field(default=0.0, init=False)
    """When the queue last showed that it lives."""
    _due: dict[str, float] = field(default_factory=dict, init=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def add(self, key: str, *, delay: float | None = None) -> None:
        """Plans work on ``key`` after ``delay`` (default ``debounce``), unless it is planned earlier."""
        due = self.clock() + (self.debounce if delay is None else delay)
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._changed.set()

    @property
    def planned(self) -> int:
        """How many keys are to be worked on, now or later."""
        return len(self._due)

    @property
    def failing(self) -> int:
        """How many keys failed the last time."""
        return len(self._failures)

    async def run(self, work: Work) -> None:
        """Never ends by itself, whatever ``work`` raises."""
        self.is_running = True
        try:
            while True:
                await self._next(work)
        finally:
            self.is_running = False

    async def _next(self, work: Work) -> None:
        self.last_beat = self.clock()
        key = self._next_due()
        if key is None:
            await self._wait()
        else:
            await self._work_on(key, work)

    def _next_due(self) -> str | None:
        due = [(moment, key) for key, moment in self._due.items() if moment <= self.clock()]
        return min(due)[1] if due else None

    async def _wait(self) -> None:
        delay = min([BEAT_SECONDS, *(moment - self.clock() for moment in self._due.values())])
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), max(delay, 0.0))
        except TimeoutError:
            return

    async def _work_on(self, key: str, work: Work) -> None:
        del self._due[key]
        try:
            retry_after = await work(key)
        except Exception:
            self._retry(key)
            return
        self._failures.pop(key, None)
        if retry_after is not None:
            self.add(key, delay=retry_after)

    def _retry(self, key: str) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        backoff = backoff_delay(failures, first=self.first_backoff, most=self.longest_backoff)
        delay = jittered(backoff, self.jitter)
        _log.warning("%s failed %d times, again in %.1f s", key, failures, delay, exc_info=failures == 1)
        self.add(key, delay=delay)
