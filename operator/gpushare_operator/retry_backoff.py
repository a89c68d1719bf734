"""Backoff of actions by object: what has no lasting effect is repeated ever more rarely.

Otherwise a webhook that rewrites what is applied, a controller that changes it back, or a server that refuses
it would be fought as fast as the API server answers.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
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
"""Attempts without a delay: somebody who changes an object once or twice does not fight us."""
FIRST_DELAY = 1.0
MAX_DELAY = 300.0
MAX_DELAY_AFTER_FAILURE = 60.0
"""Seconds. A server that refuses is asked more often: nobody fights us there."""
KUBELET_MEMORY = 310.0
"""Seconds for which the kubelet writes back what a plugin offered (``endpointStopGracePeriod`` of its device
manager, and some slack): the operator waits for it, and it is no fight."""
FREE_TURNS, TURN_SECONDS = 10, 3.0
"""How often an object may be given other fields than before: so often at once, then once in so many seconds.
A policy that changes does that, and so do two parts of the operator that fight each other."""
CONTESTED_FROM = 5
"""Attempts without a lasting effect after which people are told."""
MEMORY = timedelta(minutes=1)
"""Besides twice the delay: an action that was not planned for so long is forgotten."""
MEMORY_OF_REFUSAL = timedelta(hours=1)
"""As ``MEMORY``, for refused actions that are still planned: each of tens of thousands has its turn once in
many rounds, between which the queue waits a minute."""
NEVER = datetime.min.replace(tzinfo=UTC)
SWEEP = timedelta(seconds=1)
"""Between two searches for entries to forget: there can be thousands."""


@dataclass(slots=True)
class _Attempts:
    key: str
    action: Action
    digest: bytes
    desired_fields: DesiredFields
    attempts: int
    last: datetime
    error: str = ""
    """Why the last attempt was refused; empty when it was not."""
    conflicting_manager: str = ""
    """Who undoes it, in words, if that is known."""
    turns: float = 0.0
    """How often the object was given other fields. One turn is forgotten every ``TURN_SECONDS``."""

    @property
    def flaps(self) -> bool:
        """Whether the desired fields alternate too often for people to be the reason."""
        return self.turns > FREE_TURNS

    def turns_at(self, now: datetime) -> float:
        return max(0.0, self.turns - (now - self.last).total_seconds() / TURN_SECONDS)

    @property
    def is_remembered(self) -> bool:
        """Whether the kubelet's memory is the reason for the action."""
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
    """Which actions of a plan are to be performed now."""

    actions: list[Action] = field(default_factory=list)
    retry_after: float | None = None
    """Seconds until more of the plan is due, if any is left."""
    is_cut: bool = False
    """Whether even more actions are due now."""


@dataclass(slots=True)
class RetryBackoff:
    """Attempts by object. ``key``: the queue's key for which an action is performed."""

    _entries: dict[tuple[str, str], _Attempts] = field(default_factory=dict)
    """By ``target``, in the order of the last attempts."""
    _wanted: DesiredFields = field(default_factory=dict)
    """What was last desired of each field that entries are about."""
    _refused: set[tuple[str, str]] = field(default_factory=set)
    """Entries with an error. After a roll-out there are thousands of entries, and none of these."""
    _repeated: set[tuple[str, str]] = field(default_factory=set)
    """Entries with more than one attempt, or turn."""
    _latest: datetime | None = None
    """The clock at the last call."""
    _swept: datetime | None = None
    """When old entries were last searched for."""

    def due(self, actions: Iterable[Action], now: datetime, *, most: int = sys.maxsize) -> Due:
        """Returns ``most`` of ``actions`` that may be performed at ``now``, in their order. It takes new ones
        first, then those with the oldest attempts: else refused actions would always come before the same
        others. After more than ``most`` new actions the others are not looked at."""
        self._follow_clock(now)
        self._forget(now)
        due, candidates, last_attempts = Due(), dict[int, Action](), dict[int, datetime]()
        for position, action in enumerate(actions):
            wait = self._wait(action, now)
            if wait > 0:
                due.retry_after = min(wait, due.retry_after or wait)
                continue
            candidates[position] = action
            if entry := self._entry(action):
                last_attempts[position] = entry.last
            if len(candidates) - len(last_attempts) > most:
                break
        chosen = sorted(candidates, key=lambda position: last_attempts.get(position, NEVER))[:most]
        due.actions, due.is_cut = (
            [candidates[position] for position in sorted(chosen)],
            len(candidates) > most,
        )
        return due

    def _wait(self, action: Action, now: datetime) -> float:
        """Returns the seconds until ``action`` may be performed."""
        if entry := self._entry(action):
            return (entry.last + entry.delay - now).total_seconds()
        former = self._entries.get(target(action))
        return (former.turns_at(now) - FREE_TURNS) * TURN_SECONDS if former else 0.0

    def note(
        self, key: str, action: Action, now: datetime, *, error: str = "", conflicting_manager: str = ""
    ) -> None:
        """Notes one more attempt."""
        entry, former = self._entry(action), self._entries.get(target(action))
        attempts = entry.attempts + 1 if entry else 1
        said = conflicting_manager or (entry.conflicting_manager if entry else "")
        turns = former.turns_at(now) + (entry is None) if former else 0.0
        self._entries.pop(target(action), None)
        self._entries[target(action)] = entry = _Attempts(
            key, action, digest(action), desired_fields(action), attempts, now, error, said, turns
        )
        self._wanted.update(entry.desired_fields)
        _keep_if(error, self._refused, target(action))
        _keep_if(attempts > 1 or turns > 0, self._repeated, target(action))

    def settle(self, key: str, actions: Iterable[Action]) -> None:
        """Forgets the errors of actions that are no longer planned."""
        if not self._refused:
            return
        planned = {target(action) for action in actions}
        for name in self._refused - planned:
            if self._entries[name].key == key:
                self._entries[name].error = ""
                self._refused.discard(name)

    def errors(self, *keys: str) -> list[str]:
        """Returns why the last attempts for ``keys`` were refused, of actions that are still planned."""
        refused = (self._entries[name] for name in self._refused)
        return sorted(entry.error for entry in refused if entry.key in keys)

    def contested(self, *keys: str) -> list[str]:
        """Returns, in words, which actions for ``keys`` have no lasting effect, and who undoes them."""
        contested: list[str] = []
        for entry in (self._entries[name] for name in self._repeated):
            repeats = entry.attempts >= CONTESTED_FROM and not entry.is_remembered and self._holds(entry)
            if entry.key in keys and not entry.error and (repeats or entry.flaps):
                who = entry.conflicting_manager or "somebody undoes it"
                contested.append(f"{describe(entry.action)} has no lasting effect: {who}")
        return sorted(contested)

    def is_contested(self, action: Action) -> bool:
        """Returns whether the next attempt at ``action`` is one of many."""
        entry, former = self._entry(action), self._entries.get(target(action))
        repeats = entry is not None and entry.attempts + 1 >= CONTESTED_FROM
        return repeats or (former is not None and former.flaps)

    def _entry(self, action: Action) -> _Attempts | None:
        """Returns the attempts at the very same action; those of another one on the object do not count."""
        entry = self._entries.get(target(action))
        return entry if entry and entry.digest == digest(action) and self._holds(entry) else None

    def _holds(self, entry: _Attempts) -> bool:
        """Whether the same is still desired of its fields. Otherwise the operator itself has undone it: a
        policy went, or came back."""
        return all(self._wanted[name] == value for name, value in entry.desired_fields.items())

    def _follow_clock(self, now: datetime) -> None:
        """Where the clock was set back, attempts after ``now`` count as made at ``now``: else the next one
        would have to wait until the clock is there again."""
        if self._latest and now < self._latest:
            for entry in self._entries.values():
                entry.last = min(entry.last, now)
            self._swept = None
        self._latest = now

    def _forget(self, now: datetime) -> None:
        if self._swept and now - self._swept < SWEEP:
            return
        self._swept = now
        # After a roll-out there are thousands of entries, and for a minute none of them is old.
        aged = takewhile(lambda item: item[1].last < now - MEMORY, self._entries.items())
        gone = [name for name, entry in aged if entry.is_over(now)]
        for name in gone:
            del self._entries[name]
        if gone:
            self._refused -= set(gone)
            self._repeated -= set(gone)
            known = {name for entry in self._entries.values() for name in entry.desired_fields}
            self._wanted = {name: value for name, value in self._wanted.items() if name in known}


def _keep_if(condition: object, names: set[tuple[str, str]], name: tuple[str, str]) -> None:
    if condition:
        names.add(name)
    else:
        names.discard(name)
