"""Reads all books and has core's auditor compare them, all the time and on demand."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chaos.audit.gather import Gatherer, Reading, UnreadableBooksError
from chaos.background import background
from chaos.findings import Finding
from gpushare_core.audit.auditor import differences, released_early, seen_twice
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.records import ClusterRecords, NodeRecords

INTERVAL = 0.5
"""Seconds between two readings."""


@dataclass(slots=True)
class Auditor:
    """The auditor of one cluster. ``report`` is called with every breach of safety that was seen twice."""

    gatherer: Gatherer
    report: Callable[[Finding], None]
    readings: int = 0
    longest: float = 0.0
    """Seconds of the longest reading."""
    unreadable: int = 0
    """Readings that failed, as they do while the API server is away."""
    unread: Counter[str] = field(default_factory=Counter)
    """Book -> in how many readings it was missing."""
    _before: Mapping[str, ClusterRecords] = field(default_factory=dict)
    _earlier: Mapping[str, ClusterRecords] = field(default_factory=dict)
    """Read before that."""
    _suspects: Sequence[Difference] = ()
    _releases: Sequence[Difference] = ()
    """From one reading to the next: a mirror pod that is created anew between the responses of API server and
    extender has another UID in one of them."""

    async def differences(self) -> list[Difference]:
        """Returns all differences, including those that are wrong only in quiet, and books that cannot be
        read and so are not compared."""
        try:
            reading = await self._read()
        except UnreadableBooksError as error:
            return [Difference(node="", kind=error.kind, sentence=str(error))]
        missing = (
            Difference(
                node="",
                kind=DifferenceKind.UNREADABLE,
                pod=book,
                sentence=f"the {book} cannot be read: {why}",
            )
            for book, why in reading.unread.items()
        )
        return [*_differing(reading), *missing]

    async def look(self) -> None:
        """One check of safety: a breach is reported when it is seen twice in a row."""
        try:
            reading = await self._read()
        except UnreadableBooksError:
            self.unreadable += 1
            return
        self.unread.update(reading.unread.keys())
        found = [difference for difference in _differing(reading) if difference.kind.at_once]
        lasting = seen_twice(self._releases, _released(self._earlier, reading))
        for difference in (*seen_twice(self._suspects, found), *lasting):
            self.report(Finding(rule=difference.rule, sentence=str(difference)))
        self._releases = [*_released(self._before, reading)]
        self._suspects, self._earlier, self._before = found, self._before, reading.books

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Looks all the time while entered."""
        async with background(self._watch(), name="the auditor", report=self.report):
            yield

    async def _watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL)

    async def _read(self) -> Reading:
        begun = time.monotonic()
        reading = await self.gatherer.read()
        self.readings += 1
        self.longest = max(self.longest, time.monotonic() - begun)
        return reading


def _differing(reading: Reading) -> list[Difference]:
    """Returns the differences with the ledgers of all extenders, each difference once."""
    found: dict[tuple[str, ...], Difference] = {}
    for books in reading.books.values():
        for difference in differences(books):
            found.setdefault(difference.identity, difference)
    return list(found.values())


def _released(earlier: Mapping[str, ClusterRecords], reading: Reading) -> Iterator[Difference]:
    """Yields what an extender's ledger, or a status, has released too early since the ``earlier`` books."""
    for extender, books in reading.books.items():
        before = earlier.get(extender, ClusterRecords({}))
        for name, after in books.nodes.items():
            yield from released_early(before.nodes.get(name, NodeRecords(node=name)), after)
