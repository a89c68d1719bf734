"""Audits the ledger against annotations and GPUShareNodes, for nodes that have changed.

1. A node is audited once it has not changed for as long as records may differ: its differences have lasted
   for that long, so nothing has to be remembered.
2. A node that keeps changing is audited now and then: a difference counts if the audit before has seen it,
   too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.audit.auditor import node_differences, seen_twice
from gpushare_core.audit.difference import LASTING_SECONDS, Difference
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.listener import LedgerListener
from gpushare_extender.decide.audit.fast_path import surely_agree
from gpushare_extender.decide.audit.records import node_records, settled_differences

MAX_SECONDS = 30.0
"""Until a node is audited although it keeps changing."""
AT_ONCE = 4
"""Nodes audited in one go, for up to a millisecond each."""
PAUSE_SECONDS = 0.02
"""Between two such groups: thousands of nodes are due after a start, and kube-scheduler waits for
responses."""

_log = logging.getLogger(__name__)

LastingDifferences = dict[str, Sequence[Difference]]
"""Node -> its differences that have lasted; only nodes that have any."""


def in_order(found: Mapping[str, Sequence[Difference]]) -> Iterator[Difference]:
    for node in sorted(found):
        yield from found[node]


@dataclass(slots=True)
class ChangedNodes(LedgerListener):
    """The nodes that have changed since their last audit. ``clock`` is in steady seconds."""

    clock: Callable[[], float]
    changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _first: dict[str, float] = field(default_factory=dict, init=False)
    """Node -> when it changed first since its last audit; the one that waits longest comes first."""
    _last: dict[str, float] = field(default_factory=dict, init=False)
    """Node -> when it changed last; the one that has been quiet for longest comes first."""

    def node_changed(self, node: str) -> None:
        """Called for every change of the ledger, so it has to be cheap."""
        now = self.clock()
        self._first.setdefault(node, now)
        self._last.pop(node, None)
        self._last[node] = now
        self.changed.set()

    def take_due(self, most: int) -> list[tuple[str, bool]]:
        """Returns up to ``most`` nodes that are due, and whether each has been quiet."""
        due: list[tuple[str, bool]] = []
        while len(due) < most and (node := self._next_due()):
            due.append((node, self.clock() - self._last.pop(node) >= LASTING_SECONDS))
            del self._first[node]
        return due

    def _next_due(self) -> str:
        """Returns the name of a node, empty while none is due."""
        now, first, last = self.clock(), next(iter(self._first), ""), next(iter(self._last), "")
        if first and now - self._first[first] >= MAX_SECONDS:
            return first
        return last if last and now - self._last[last] >= LASTING_SECONDS else ""

    def seconds_until_due(self) -> float | None:
        """Returns the seconds until a node is due; None while none has changed."""
        if not self._first:
            return None
        first, last = next(iter(self._first.values())), next(iter(self._last.values()))
        return max(0.0, min(last + LASTING_SECONDS, first + MAX_SECONDS) - self.clock())


@dataclass(slots=True)
class LedgerAudit:
    """Keeps ``found``, and calls ``changed`` whenever it is another one than before."""

    ledger: Ledger
    nodes: ChangedNodes
    changed: Callable[[], None] = lambda: None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    found: LastingDifferences = field(default_factory=LastingDifferences, kw_only=True)
    _seen: dict[str, Sequence[Difference]] = field(default_factory=dict, init=False)
    """Node -> the differences that its last audit has seen."""

    async def run(self) -> None:
        while True:
            await self._until_due()
            self.audit_due()
            await self.sleep(PAUSE_SECONDS)

    def audit_due(self) -> None:
        before = dict(self.found)
        for node, is_quiet in self.nodes.take_due(AT_ONCE):
            self._audit(node, is_quiet=is_quiet)
        if before != self.found:
            self.changed()

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

    def _audit(self, node: str, *, is_quiet: bool) -> None:
        """Waits for pods that were just deleted to be released; but not on a node that keeps changing, such
        as one whose kubelet rejects pods that are made anew again and again."""
        unreleased = self.ledger.unreleased(node)
        if unreleased and is_quiet:
            self.nodes.node_changed(node)
            return
        seen = self._seen_now(node, unreleased, is_quiet=is_quiet)
        lasting = seen if is_quiet else seen_twice(self._seen.get(node, ()), seen)
        if lasting and node not in self.found:
            _log.warning("records of the node differ: %s", lasting[0].sentence, extra={"node": node})
        elif node in self.found and not lasting:
            _log.info("records of the node agree again", extra={"node": node})
        _put(self._seen, node, seen)
        _put(self.found, node, lasting)
        if seen and not is_quiet:
            self.nodes.node_changed(node)

    def _seen_now(self, node: str, unreleased: Collection[str], *, is_quiet: bool) -> Sequence[Difference]:
        records = None if surely_agree(self.ledger, node) else node_records(self.ledger, node)
        if records is None:
            return []
        return node_differences(records) if is_quiet else settled_differences(records, unreleased)


def _put(by_node: dict[str, Sequence[Difference]], node: str, differences: Sequence[Difference]) -> None:
    if differences:
        by_node[node] = differences
    else:
        by_node.pop(node, None)
