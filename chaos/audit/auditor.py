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
from gpushare_core.audit.difference import Difference, DifferenceKind
from gpushare_core.audit.differences import differences, released_early, seen_twice
from gpushare_core.audit.records import ClusterRecords, NodeRecords

INTERVAL = 0.5
"""Seconds between two readings."""


@dataclass(slots=True)
class Auditor:
    """Of one cluster. ``report`` is called with every breach of safety that was seen twice."""

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
    """Seen from the reading before the last to the last: a mirror pod that was made anew between the API's
    answer and the extender's has another UID in one of them."""

    async def differences(self) -> list[Difference]:
        """Returns everything that differs now, also what is only wrong in quiet: a book, too, that cannot be
        read and is therefore not compared."""
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
        """One step of safety: what may never be is reported once it is seen twice in a row."""
        try:
            reading = await self._read()
        except UnreadableBooksError:
            self.unreadable += 1
            return
        self.unread.update(reading.unread.keys())
        found = [each for each in _differing(reading) if each.kind.at_once]
        lasting = seen_twice(self._releases, _released(self._earlier, reading))
        for each in (*seen_twice(self._suspects, found), *lasting):
            self.report(Finding(rule=each.rule, sentence=str(each)))
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
    """Returns what differs with the ledger of any extender, each difference once."""
    found: dict[tuple[str, ...], Difference] = {}
    for books in reading.books.values():
        for difference in differences(books):
            found.setdefault(difference.identity, difference)
    return list(found.values())


def _released(earlier: Mapping[str, ClusterRecords], reading: Reading) -> Iterator[Difference]:
    """Yields by each extender what it, or the status, has released early since the ``earlier`` books."""
    for extender, books in reading.books.items():
        before = earlier.get(extender, ClusterRecords({}))
        for name, after in books.nodes.items():
            yield from released_early(before.nodes.get(name, NodeRecords(node=name)), after)
