"""Which facts of nodes a policy's Events have reported: each when it begins, and when it ends.

A fact that comes and goes is reported again only after a while. Many facts of one kind share one Event.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import NamedTuple

from gpushare_operator.status.nodes.node_facts import OVER, Fact, Notice

QUIET = timedelta(minutes=10)
"""Between two Events about one fact."""
MAX_OF_A_KIND = 5
"""Facts of one kind with an Event each. More share one Event, which names some nodes and says how many."""

MAX_EVENTS = 20
"""Within ``QUIET``. Later facts wait, and are reported together: nodes may also fail one after the other."""


class _Reported(NamedTuple):
    is_so: bool
    at: datetime


@dataclass(slots=True)
class NodeNotices:
    """Of one policy. An earlier operator has reported the facts of the first call."""

    _reported: dict[Fact, _Reported] | None = field(default=None, init=False)
    _posted: list[datetime] = field(default_factory=list, init=False)
    """When Events were last posted, the oldest first."""

    def due(self, facts: Mapping[Fact, str], now: datetime) -> list[Notice]:
        """Returns what is to be reported now. ``facts``: all that are so, with their sentences."""
        if self._reported is None:
            self._reported = {fact: _Reported(is_so=True, at=now - QUIET) for fact in facts}
        self._posted = [moment for moment in self._posted if timedelta() <= now - moment < QUIET]
        if len(self._posted) >= MAX_EVENTS:
            return []
        changed = [fact for fact in {**facts, **self._reported} if self._is_due(fact, facts, now)]
        for fact in changed:
            self._reported[fact] = _Reported(is_so=fact in facts, at=now)
        self._forget(now)
        notices = list(_notices(changed, facts))
        self._posted += [now] * len(notices)
        return notices

    def seconds_until_due(self, facts: Iterable[Fact], now: datetime) -> float | None:
        """Returns when a fact that waits may be reported, if there is one."""
        reported, so = self._reported or {}, frozenset(facts)
        waiting = [event.at + QUIET for fact, event in reported.items() if event.is_so != (fact in so)]
        waiting += [now for fact in so if fact not in reported]
        if not waiting:
            return None
        is_full = len(self._posted) >= MAX_EVENTS
        first = max(min(waiting), self._posted[0] + QUIET) if is_full else min(waiting)
        return max(0.0, (first - now).total_seconds())

    def _is_due(self, fact: Fact, facts: Mapping[Fact, str], now: datetime) -> bool:
        reported = (self._reported or {}).get(fact)
        if reported is None:
            return True
        return reported.is_so != (fact in facts) and not timedelta() <= now - reported.at < QUIET

    def _forget(self, now: datetime) -> None:
        reported = (self._reported or {}).items()
        self._reported = {fact: event for fact, event in reported if event.is_so or now - event.at < QUIET}


def _notices(changed: Iterable[Fact], facts: Mapping[Fact, str]) -> Iterator[Notice]:
    def key(fact: Fact) -> tuple[str, bool]:
        return fact.kind, fact in facts

    for (_, is_so), group in groupby(sorted(changed, key=key), key=key):
        of_kind = sorted(group)
        over, over_text = OVER[of_kind[0].kind]
        reason = of_kind[0].kind.value if is_so else over
        if len(of_kind) > MAX_OF_A_KIND:
            names = ", ".join(dict.fromkeys(fact.node for fact in of_kind[: MAX_OF_A_KIND * 4]))
            yield Notice(reason, f"{len(of_kind)} at once, on nodes such as {names}", is_so)
        else:
            for fact in of_kind:
                text = facts.get(fact) or over_text.format(**fact._asdict())
                yield Notice(reason, text, is_so)
