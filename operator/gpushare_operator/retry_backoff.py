"""How often the same was asked of an object: what has no lasting effect is repeated ever more rarely.

A webhook that rewrites what is applied, a controller that changes it back, or a server that refuses would
else be fought as fast as the API server answers.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile

from gpushare_core.kube.backoff import backoff_delay
from gpushare_operator.actions import (
    Action,
    CapacityLeft,
    ClearCapacity,
    DesiredFields,
    SetCounts,
    describe,
    desired_fields,
    digest,
    target,
)

FREE = 2
"""RetryBackoff without a delay: that somebody changes a thing once or twice is no fight."""
FIRST_DELAY = 1.0
MAX_DELAY = 300.0
MAX_DELAY_AFTER_FAILURE = 60.0
"""Seconds. A server that refuses is asked more often: it is not fought."""
KUBELET_MEMORY = 310.0
"""Seconds. So long the kubelet writes back what a plugin offered (``endpointStopGracePeriod`` of its device
manager, and some slack): it is waited for, and it is no fight."""
FREE_TURNS, TURN_SECONDS = 10, 3.0
"""So often at once, and then once in so many seconds, an object may be asked for something else than before:
a policy that changes does that, and so does a fight in which two parts of the operator take turns."""
CONTESTED_FROM = 5
"""Attempts without a lasting effect after which people are told."""
MEMORY = timedelta(minutes=1)
"""Besides twice the delay: what was not asked for so long is forgotten."""
MEMORY_OF_REFUSAL = timedelta(hours=1)
"""As ``MEMORY``, of what was refused and is still asked for: of tens of thousands of refused actions each has
its turn once in many rounds, between which the queue waits a minute."""
SWEEP = timedelta(seconds=1)
"""Between two looks for what may be forgotten: there can be thousands of entries."""


@dataclass(slots=True)
class _Entry:
    key: str
    action: Action
    digest: bytes
    desired_fields: DesiredFields
    attempts: int
    last: datetime
    error: str = ""
    """Why the last attempt was refused; empty when it was not."""
    conflicting_manager: str = ""
    """Who undoes it, in words, as far as it can be told."""
    turns: float = 0.0
    """How often something else was asked of the object; one is forgotten every ``TURN_SECONDS``."""

    @property
    def flaps(self) -> bool:
        """Whether the object is asked for one thing and another too often for people to be at it."""
        return self.turns > FREE_TURNS

    def turns_at(self, now: datetime) -> float:
        return max(0.0, self.turns - (now - self.last).total_seconds() / TURN_SECONDS)

    @property
    def is_remembered(self) -> bool:
        """Whether the kubelet's memory makes it necessary."""
        return isinstance(self.action, ClearCapacity) and self.action.left is CapacityLeft.BY_KUBELET

    @property
    def delay(self) -> timedelta:
        if (self.is_remembered or isinstance(self.action, SetCounts)) and not self.error:
            return timedelta(seconds=KUBELET_MEMORY)
        most = MAX_DELAY_AFTER_FAILURE if self.error else MAX_DELAY
        return timedelta(seconds=backoff_delay(self.attempts - FREE, first=FIRST_DELAY, most=most))

    def is_over(self, now: datetime) -> bool:
        return now - self.last > 2 * self.delay + (MEMORY_OF_REFUSAL if self.error else MEMORY)


@dataclass(slots=True)
class Due:
    """What of a plan is to be done now. ``retry_after``: seconds until more of it is, if any is left."""

    actions: list[Action] = field(default_factory=list)
    retry_after: float | None = None
    is_cut: bool = False
    """Whether even more might be done now."""


@dataclass(slots=True)
class _Candidates:
    """What of a plan may be done now, by its position there."""

    new: dict[int, Action] = field(default_factory=dict)
    again: dict[int, tuple[datetime, Action]] = field(default_factory=dict)
    """With the moment of the last attempt."""

    def first(self, most: int) -> list[Action]:
        """Returns ``most`` of them, as ordered as the plan: those that were not tried yet, then those whose
        last attempt is the longest ago. Else what is refused would always come before the same others."""
        by_age = sorted(self.again, key=lambda position: self.again[position][0])
        chosen = sorted([*self.new, *by_age][:most])
        return [self.new[each] if each in self.new else self.again[each][1] for each in chosen]

    @property
    def number(self) -> int:
        return len(self.new) + len(self.again)


@dataclass(slots=True)
class RetryBackoff:
    """Attempts by object. ``key`` says on whose behalf something is done, as in the queue."""

    _entries: dict[tuple[str, str], _Entry] = field(default_factory=dict)
    """The one that was noted last comes last."""
    _wanted: DesiredFields = field(default_factory=dict)
    """Of each thing that entries are about: what was asked of it last."""
    _refused: set[tuple[str, str]] = field(default_factory=set)
    """Entries with an error. After a roll-out there are thousands of entries, and none of these."""
    _repeated: set[tuple[str, str]] = field(default_factory=set)
    """Entries of which more was asked than once."""
    _latest: datetime | None = None
    """The clock, when it was looked at last."""
    _swept: datetime | None = None
    """When old entries were looked for last."""

    def due(self, actions: Iterable[Action], now: datetime, *, most: int = sys.maxsize) -> Due:
        """Returns what of ``actions`` may be done at ``now``, in their order: ``most`` of it, what was not
        tried yet before all else. Where that is ``most`` already, those after them are not looked at."""
        self._follow_clock(now)
        self._forget(now)
        due, candidates = Due(), _Candidates()
        for position, action in enumerate(actions):
            wait = self._wait(action, now)
            if wait > 0:
                due.retry_after = min(wait, due.retry_after or wait)
            elif entry := self._entry(action):
                candidates.again[position] = (entry.last, action)
            else:
                candidates.new[position] = action
            if len(candidates.new) > most:
                break
        due.actions, due.is_cut = candidates.first(most), candidates.number > most
        return due

    def _wait(self, action: Action, now: datetime) -> float:
        """Returns the seconds until ``action`` may be done."""
        if entry := self._entry(action):
            return (entry.last + entry.delay - now).total_seconds()
        former = self._entries.get(target(action))
        return (former.turns_at(now) - FREE_TURNS) * TURN_SECONDS if former else 0.0

    def note(
        self, key: str, action: Action, now: datetime, *, error: str = "", conflicting_manager: str = ""
    ) -> None:
        """Takes down one more attempt."""
        entry, former = self._entry(action), self._entries.get(target(action))
        attempts = entry.attempts + 1 if entry else 1
        said = conflicting_manager or (entry.conflicting_manager if entry else "")
        turns = former.turns_at(now) + (entry is None) if former else 0.0
        self._entries.pop(target(action), None)
        self._entries[target(action)] = entry = _Entry(
            key, action, digest(action), desired_fields(action), attempts, now, error, said, turns
        )
        self._wanted.update(entry.desired_fields)
        _keep_if(error, self._refused, target(action))
        _keep_if(attempts > 1 or turns > 0, self._repeated, target(action))

    def settle(self, key: str, actions: Iterable[Action]) -> None:
        """Forgets why something was refused that is not among ``actions`` any more: nobody asks for it."""
        if not self._refused:
            return
        planned = {target(action) for action in actions}
        for name in self._refused - planned:
            if self._entries[name].key == key:
                self._entries[name].error = ""
                self._refused.discard(name)

    def errors(self, *keys: str) -> list[str]:
        """Returns why the last attempts at what is still asked for were refused; of the ``keys`` only."""
        refused = (self._entries[name] for name in self._refused)
        return sorted(entry.error for entry in refused if entry.key in keys)

    def contested(self, *keys: str) -> list[str]:
        """Returns what has no lasting effect, and who undoes it, in words; of the ``keys`` only."""
        return sorted(self._contested(keys))

    def _contested(self, keys: Iterable[str]) -> Iterator[str]:
        for entry in (self._entries[name] for name in self._repeated):
            repeats = entry.attempts >= CONTESTED_FROM and not entry.is_remembered and self._holds(entry)
            if entry.key in keys and not entry.error and (repeats or entry.flaps):
                yield f"{describe(entry.action)} has no lasting effect: {entry.conflicting_manager or 'somebody undoes it'}"

    def is_contested(self, action: Action) -> bool:
        """Returns whether the next attempt at ``action`` is one of many."""
        entry, former = self._entry(action), self._entries.get(target(action))
        repeats = entry is not None and entry.attempts + 1 >= CONTESTED_FROM
        return repeats or (former is not None and former.flaps)

    def _entry(self, action: Action) -> _Entry | None:
        """Returns what is known of the very same action; another one on the object begins anew."""
        entry = self._entries.get(target(action))
        return entry if entry and entry.digest == digest(action) and self._holds(entry) else None

    def _holds(self, entry: _Entry) -> bool:
        """Whether nothing else was asked of its things since: then it was not somebody else who undid it, but
        a policy went, or came back."""
        return all(self._wanted[thing] == value for thing, value in entry.desired_fields.items())

    def _follow_clock(self, now: datetime) -> None:
        """Where the clock was set back, what was done after ``now`` counts as done just now: else it would
        have to wait until the clock is there again."""
        if self._latest and now < self._latest:
            for entry in self._entries.values():
                entry.last = min(entry.last, now)
            self._swept = None
        self._latest = now

    def _forget(self, now: datetime) -> None:
        if self._swept and now - self._swept < SWEEP:
            return
        self._swept = now
        # After a roll-out there are thousands, and for a minute none of them is old.
        aged = takewhile(lambda each: each[1].last < now - MEMORY, self._entries.items())
        gone = [name for name, entry in aged if entry.is_over(now)]
        for name in gone:
            del self._entries[name]
        if gone:
            self._refused -= set(gone)
            self._repeated -= set(gone)
            known = {thing for entry in self._entries.values() for thing in entry.desired_fields}
            self._wanted = {thing: value for thing, value in self._wanted.items() if thing in known}


def _keep_if(condition: object, names: set[tuple[str, str]], name: tuple[str, str]) -> None:
    if condition:
        names.add(name)
    else:
        names.discard(name)
