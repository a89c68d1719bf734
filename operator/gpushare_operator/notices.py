"""Which facts of nodes a policy's Events have told: each once when it begins and once when it ends.

What comes and goes is told again after a while only, and of many of a kind at once there is one Event.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from gpushare_operator.status.nodes.node_facts import OVER, Fact, Notice, over_sentence

QUIET = timedelta(minutes=10)
"""After an Event about a fact, before the next one about it."""
MAX_OF_A_KIND = 5
"""Events at once; of more there is one that names as many nodes, and says how many there are."""


MAX_EVENTS = 20
"""Within ``QUIET``. What comes later waits, and is told together: nodes may fail one after the other, too."""


class _Told(NamedTuple):
    is_so: bool
    at: datetime


@dataclass(slots=True)
class NodeNotices:
    """Of one policy. What is so at the first look was told by whoever was here before."""

    _told: dict[Fact, _Told] | None = field(default=None, init=False)
    _posted: list[datetime] = field(default_factory=list, init=False)
    """When Events were posted lately, the oldest first."""

    def due(self, facts: Mapping[Fact, str], now: datetime) -> list[Notice]:
        """Returns what is to be told now; ``facts`` are all that are so, with their sentences."""
        if self._told is None:
            self._told = {fact: _Told(is_so=True, at=now - QUIET) for fact in facts}
        self._posted = [moment for moment in self._posted if timedelta() <= now - moment < QUIET]
        if len(self._posted) >= MAX_EVENTS:
            return []
        changed = [fact for fact in {**facts, **self._told} if self._is_due(fact, facts, now)]
        for fact in changed:
            self._told[fact] = _Told(is_so=fact in facts, at=now)
        self._forget(now)
        notices = list(_notices(changed, facts))
        self._posted += [now] * len(notices)
        return notices

    def seconds_until_due(self, facts: Iterable[Fact], now: datetime) -> float | None:
        """Returns when something that is held back may be told, if there is anything."""
        told, so = self._told or {}, frozenset(facts)
        waiting = [each.at + QUIET for fact, each in told.items() if each.is_so != (fact in so)]
        waiting += [now for fact in so if fact not in told]
        if not waiting:
            return None
        is_full = len(self._posted) >= MAX_EVENTS
        first = max(min(waiting), self._posted[0] + QUIET) if is_full else min(waiting)
        return max(0.0, (first - now).total_seconds())

    def _is_due(self, fact: Fact, facts: Mapping[Fact, str], now: datetime) -> bool:
        told = (self._told or {}).get(fact)
        if told is None:
            return True
        return told.is_so != (fact in facts) and not timedelta() <= now - told.at < QUIET

    def _forget(self, now: datetime) -> None:
        told = (self._told or {}).items()
        self._told = {fact: each for fact, each in told if each.is_so or now - each.at < QUIET}


def _notices(changed: Iterable[Fact], facts: Mapping[Fact, str]) -> Iterator[Notice]:
    def key(fact: Fact) -> tuple[str, bool]:
        return fact.kind, fact in facts

    for (_, is_so), group in groupby(sorted(changed, key=key), key=key):
        of_kind = sorted(group)
        reason = of_kind[0].kind.value if is_so else OVER[of_kind[0].kind]
        if len(of_kind) > MAX_OF_A_KIND:
            names = ", ".join(dict.fromkeys(fact.node for fact in of_kind[: MAX_OF_A_KIND * 4]))
            yield Notice(reason, f"{len(of_kind)} at once, on nodes such as {names}", is_so)
        else:
            yield from (Notice(reason, facts.get(fact) or over_sentence(fact), is_so) for fact in of_kind)
