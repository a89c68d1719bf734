"""Auditing the ledger against annotations and GPUShareNodes: only nodes that changed, once they are quiet.

What differs on a node that has not changed for as long as books may differ has lasted for that long: nothing
else need be remembered. A node that changes all the time is looked at now and then; of what is seen there
only that counts which was there at the look before.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.audit.difference import LASTING_SECONDS, Difference
from gpushare_core.audit.differences import node_differences, seen_twice
from gpushare_extender.decide.audit.fast_path import surely_agree
from gpushare_extender.decide.audit.records import node_books, settled_differences
from gpushare_extender.ledger.ledger import Ledger

MAX_SECONDS = 30.0
"""After which a node is looked at although it keeps changing."""
AT_ONCE = 4
"""Nodes that are looked at before others have their turn: up to a millisecond each."""
PAUSE_SECONDS = 0.02
"""Between two such groups: after a start thousands of nodes are due, and kube-scheduler waits for answers."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class ChangedNodes:
    """Which nodes have changed since they were looked at. ``clock`` is in steady seconds."""

    clock: Callable[[], float]
    changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _first: dict[str, float] = field(default_factory=dict, init=False)
    """Node -> when it changed first since it was looked at; the one that waits longest comes first."""
    _last: dict[str, float] = field(default_factory=dict, init=False)
    """Node -> when it changed last; the one that has been quiet for longest comes first."""

    def note(self, node: str) -> None:
        """The node has just changed: cheap, for every change of the ledger says so."""
        now = self.clock()
        self._first.setdefault(node, now)
        self._last.pop(node, None)
        self._last[node] = now
        self.changed.set()

    def take_due(self, most: int) -> list[tuple[str, bool]]:
        """Returns up to ``most`` nodes that are to be looked at, and whether each has been quiet."""
        due: list[tuple[str, bool]] = []
        while len(due) < most and (node := self._next_due()):
            due.append((node, self.clock() - self._last.pop(node) >= LASTING_SECONDS))
            del self._first[node]
        return due

    def _next_due(self) -> str:
        """Returns an empty text while none is due."""
        now, first, last = self.clock(), next(iter(self._first), ""), next(iter(self._last), "")
        if first and now - self._first[first] >= MAX_SECONDS:
            return first
        return last if last and now - self._last[last] >= LASTING_SECONDS else ""

    def seconds_until_due(self) -> float | None:
        """Returns the seconds until some node is to be looked at; None while none has changed."""
        if not self._first:
            return None
        first, last = next(iter(self._first.values())), next(iter(self._last.values()))
        return max(0.0, min(last + LASTING_SECONDS, first + MAX_SECONDS) - self.clock())


@dataclass(slots=True)
class BookAudit:
    """``told`` is called whenever another set of differences has lasted."""

    ledger: Ledger
    nodes: ChangedNodes
    told: Callable[[], None] = lambda: None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _found: dict[str, Sequence[Difference]] = field(default_factory=dict, init=False)
    """Node -> what has lasted there; only of nodes where there is something."""
    _seen: dict[str, Sequence[Difference]] = field(default_factory=dict, init=False)
    """Node -> what was seen at the last look."""

    @property
    def found(self) -> Mapping[str, Sequence[Difference]]:
        """Returns node -> the differences that have lasted there; empty while all books agree."""
        return self._found

    def differences(self) -> Iterator[Difference]:
        """Yields all that have lasted, in order of the nodes' names."""
        for node in sorted(self._found):
            yield from self._found[node]

    async def run(self) -> None:
        """Looks at nodes when they are due; never returns."""
        while True:
            await self._until_due()
            self.look_at_due()
            await self.sleep(PAUSE_SECONDS)

    def look_at_due(self) -> None:
        """Looks at some of the nodes that are due."""
        before = dict(self._found)
        for node, is_quiet in self.nodes.take_due(AT_ONCE):
            self._look(node, is_quiet=is_quiet)
        if before != self._found:
            self.told()

    async def _until_due(self) -> None:
        while True:
            seconds = self.nodes.seconds_until_due()
            if seconds == 0.0:
                return
            if seconds is not None:
                await self.sleep(seconds)
                continue
            self.nodes.changed.clear()
            await self.nodes.changed.wait()

    def _look(self, node: str, *, is_quiet: bool) -> None:
        """Pods that have just gone are waited for, but not where others follow them all the time: pods that a
        kubelet refuses come again and again."""
        departing = self.ledger.departing(node)
        if departing and is_quiet:
            self.nodes.note(node)
            return
        seen = self._seen_now(node, departing, is_quiet=is_quiet)
        lasting = seen if is_quiet else seen_twice(self._seen.get(node, ()), seen)
        if lasting and node not in self._found:
            _log.warning("books differ: %s", lasting[0].sentence, extra={"node": node})
        elif node in self._found and not lasting:
            _log.info("books agree again", extra={"node": node})
        _put(self._seen, node, seen)
        _put(self._found, node, lasting)
        if seen and not is_quiet:
            self.nodes.note(node)

    def _seen_now(self, node: str, departing: Collection[str], *, is_quiet: bool) -> Sequence[Difference]:
        books = None if surely_agree(self.ledger, node) else node_books(self.ledger, node)
        if books is None:
            return []
        return node_differences(books) if is_quiet else settled_differences(books, departing)


def _put(by_node: dict[str, Sequence[Difference]], node: str, differences: Sequence[Difference]) -> None:
    if differences:
        by_node[node] = differences
    else:
        by_node.pop(node, None)
