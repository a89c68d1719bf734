"""Reads all books and has core's auditor compare them, all the time and on demand."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chaos.audit.gather import Gatherer, UnreadableBooksError
from chaos.findings import Finding
from gpushare_core.audit.books import Books, NodeBooks
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.differences import differences, released_early, seen_twice

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
    _before: Books = field(default_factory=lambda: Books({}))
    _suspects: Sequence[Difference] = ()

    async def differences(self) -> list[Difference]:
        """Returns everything that differs now, also what is only wrong in quiet."""
        try:
            return differences(await self._read())
        except UnreadableBooksError as error:
            return [Difference(node="", kind=error.kind, sentence=str(error))]

    async def look(self) -> None:
        """One step of safety: what may never be is reported once it is seen twice in a row."""
        try:
            books = await self._read()
        except UnreadableBooksError:
            self.unreadable += 1
            return
        found = [each for each in differences(books) if each.kind.at_once]
        for each in seen_twice(self._suspects, found):
            self.report(Finding(rule=each.rule, sentence=str(each)))
        for name, after in books.nodes.items():
            for each in released_early(self._before.nodes.get(name, NodeBooks(node=name)), after):
                self.report(Finding(rule=each.rule, sentence=str(each)))
        self._suspects, self._before = found, books

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Looks all the time while entered."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if not task.cancelled() and (error := task.exception()):
            raise error

    async def _watch(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL)

    async def _read(self) -> Books:
        begun = time.monotonic()
        books = await self.gatherer.read()
        self.readings += 1
        self.longest = max(self.longest, time.monotonic() - begun)
        return books
