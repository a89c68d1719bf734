"""A queue of keys for level-based work: no key twice, failed keys again after a growing delay, for ever."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field

from gpushare_core.kube.backoff import Jitter, backoff_delay, heeding, jittered
from gpushare_core.kube.errors import asked_to_wait

_log = logging.getLogger(__name__)

Work = Callable[[str], Awaitable[float | None]]
"""Key -> seconds after which it is to be called again by itself, if at all."""

STEADY_SECONDS = 0.4
"""Between two rounds of a key where something changes all the time, as in a large cluster."""
FREE_ROUNDS = 10
"""Rounds of a key that follow each other by the debounce alone: a policy needs some, one after the other."""
BEAT_SECONDS = 15.0
"""Between two signs of life of an idle queue."""


class PartlyFailedError(Exception):
    """Something of the work failed, and is not tried again before ``asked_to_wait`` seconds.

    The rest is due again after ``retry_after`` seconds, if at all: it does not wait for the backoff.
    """

    def __init__(self, message: str, retry_after: float | None = None, asked_to_wait: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        self.asked_to_wait = asked_to_wait


@dataclass(slots=True)
class Debounce:
    """Does once what many changes ask for: when that has stayed the same for ``seconds``."""

    seconds: float
    clock: Callable[[], float]
    _asked: Hashable = field(default=None, init=False)
    _since: float = field(default=float("-inf"), init=False)

    def seconds_left(self, asked: Hashable) -> float:
        """Returns how long what is ``asked`` for now still has to wait."""
        if asked != self._asked:
            self._asked, self._since = asked, self.clock()
        return max(0.0, self._since + self.seconds - self.clock())


@dataclass(slots=True)
class _Pace:
    """How many rounds a key has had lately. One is forgotten every ``STEADY_SECONDS``."""

    rounds: float = 0.0
    last: float = float("-inf")

    def rounds_at(self, now: float) -> float:
        return max(0.0, self.rounds - (now - self.last) / STEADY_SECONDS)

    def note(self, now: float) -> None:
        self.rounds, self.last = self.rounds_at(now) + 1, now

    def seconds_until_free(self, now: float) -> float:
        """At most ``STEADY_SECONDS``, however many rounds a key has asked for by itself."""
        return min(1.0, self.rounds_at(now) - FREE_ROUNDS) * STEADY_SECONDS


@dataclass(slots=True)
class WorkQueue:
    """Works on one key at a time. ``clock`` gives monotonic seconds; so are all durations."""

    clock: Callable[[], float]
    jitter: Jitter = random.random
    debounce: float = 0.1
    """Further changes of a key within this time are taken together."""
    first_backoff: float = 0.5
    longest_backoff: float = 60.0
    is_running: bool = field(default=False, init=False)
    last_beat: float = field(default=0.0, init=False)
    """The last sign of life."""
    _due: dict[str, float] = field(default_factory=dict, init=False)
    _failures: dict[str, int] = field(default_factory=dict, init=False)
    _paces: dict[str, _Pace] = field(default_factory=dict, init=False)
    """Of keys with rounds lately."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def add(self, key: str, *, delay: float | None = None) -> None:
        """Plans work on ``key`` after ``delay``, unless it is planned earlier. By default ``delay`` is the
        debounce, which is longer for a key that has had many rounds lately."""
        now = self.clock()
        if delay is None:
            pace = self._paces.get(key)
            delay = max(self.debounce, pace.seconds_until_free(now)) if pace else self.debounce
        due = now + delay
        if due < self._due.get(key, float("inf")):
            self._due[key] = due
            self._changed.set()

    @property
    def planned(self) -> int:
        """Number of keys that are due, now or later."""
        return len(self._due)

    @property
    def failing(self) -> int:
        """Number of keys that failed the last time."""
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
        due = [(moment, key) for key, moment in self._due.items() if moment <= self.clock()]
        if due:
            await self._work_on(min(due)[1], work)
        else:
            await self._wait()

    async def _wait(self) -> None:
        delay = min([BEAT_SECONDS, *(moment - self.clock() for moment in self._due.values())])
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), max(delay, 0.0))
        except TimeoutError:
            return

    async def _work_on(self, key: str, work: Work) -> None:
        del self._due[key]
        self._note_round(key)
        try:
            retry_after = await work(key)
        except Exception as error:
            partly = error if isinstance(error, PartlyFailedError) else None
            self._retry(key, partly.asked_to_wait if partly else asked_to_wait(error))
            retry_after = partly.retry_after if partly else None
        else:
            self._failures.pop(key, None)
        if retry_after is not None:
            self.add(key, delay=retry_after)

    def _note_round(self, key: str) -> None:
        now = self.clock()
        self._paces = {name: pace for name, pace in self._paces.items() if pace.rounds_at(now)}
        self._paces.setdefault(key, _Pace()).note(now)

    def _retry(self, key: str, least: float) -> None:
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        backoff = backoff_delay(failures, first=self.first_backoff, most=self.longest_backoff)
        delay = heeding(least, jittered(backoff, self.jitter), self.jitter)
        _log.warning(
            "%s failed %d times, trying again in %.1f s", key, failures, delay, exc_info=failures == 1
        )
        self.add(key, delay=delay)
