"""One gathering for all browsers: it reads, decides, and publishes, as long as somebody looks."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Never

import msgspec

from gpushare_cli.decide.status import status_report
from gpushare_cli.decide.web.node_rows import PageRow, node_rows, unread_rows
from gpushare_cli.decide.web.page_lists import (
    Freshness,
    PageTitle,
    Trouble,
    incomplete_parts,
    page_problem,
    waiting_list,
)
from gpushare_cli.decide.web.page_state import PageState
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.web.page_reading import PageReader, PageRound
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.process.malloc import give_back
from gpushare_core.process.version import VERSION

PAUSE_SECONDS = 2.0
"""Between rounds, as --watch has it."""
BUSY_SHARE = 0.2
"""The part of its time that a large cluster keeps this process busy, at most."""
LONGEST_PAUSE = 20.0
"""Seconds between rounds at most: a hundred pages of a large cluster keep the process busy as well."""
LATE_SECONDS = 20.0
"""After so long without new figures, because nobody looks or nobody answers, the last ones are called old."""
LATE = (
    "no answer for {:.0f} s: the API server is slow, or a login waits for you in the terminal of"
    " kubectl gpushare web"
)
TROUBLES = (CannotLookError, NoCredentialsError, ApiError, UnreachableError)

encode = msgspec.json.encode


class Publication:
    """What is published, and who waits for it."""

    def __init__(self) -> None:
        self.state = PageState()
        self.share_nodes: Mapping[str, msgspec.Raw] | None = None
        """GPUShareNodes, from which the figures are; None while these are old."""
        self._changed = asyncio.Event()
        self._watchers = 0
        self.wanted = asyncio.Event()
        """Set while somebody looks."""

    def publish(self, rows: Mapping[str, bytes] | None = None, **parts: bytes) -> None:
        if self.state.publish(rows, **parts):
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def changed(self, version: int) -> None:
        """Waits until there is something newer than ``version``."""
        while self.state.version <= version:
            await self._changed.wait()

    def __enter__(self) -> None:
        self._watchers += 1
        self.wanted.set()

    def __exit__(self, *_error: object) -> None:
        self._watchers -= 1
        if not self._watchers:
            self.wanted.clear()


@dataclass(slots=True, kw_only=True)
class Gathering:
    reader: PageReader
    publication: Publication
    server: str
    rack_label: str
    now: Callable[[], datetime]
    pause: float = PAUSE_SECONDS
    late: float = LATE_SECONDS
    _rows: dict[str, PageRow] = field(default_factory=dict)
    _freshness: Freshness = field(default_factory=Freshness)

    async def first(self) -> None:
        """Raises one of ``TROUBLES``: what is wrong from the start stays wrong."""
        await self._round()

    async def run(self) -> Never:
        """Never ends. What cannot be read is published, and tried again."""
        while True:
            await self._wanted()
            began = time.process_time()
            late = asyncio.get_running_loop().call_later(self.late, self._publish_late)
            try:
                await self._round()
            except TROUBLES as error:
                self._publish_old(trouble_of(error), str(error))
                await self.reader.close()
            finally:
                late.cancel()
            busy = time.process_time() - began
            await asyncio.sleep(max(self.pause, min(busy / BUSY_SHARE, LONGEST_PAUSE)))

    async def _wanted(self) -> None:
        """Waits until somebody looks. After a while nothing is followed any more, and the last figures, which
        the next page begins with, are called old."""
        try:
            async with asyncio.timeout(self.late):
                await self.publication.wanted.wait()
        except TimeoutError:
            self._publish_first_trouble(Trouble.PAUSED, "")
            await self.reader.close()
            await self.publication.wanted.wait()

    async def _round(self) -> None:
        await self._read_and_publish()
        give_back()

    async def _read_and_publish(self) -> None:
        found = await self.reader.read()
        freshness = Freshness(read_at=rfc3339(self.now()))
        reading, unread, incomplete = found.reading, found.unread, incomplete_parts(found.facts)
        lists = await asyncio.to_thread(_lists, found)
        del found  # else the facts of 5,000 nodes would be in memory while their rows are made
        self._rows = await asyncio.to_thread(node_rows, reading, self._rows)
        title = PageTitle(
            server=self.server,
            version=VERSION,
            group_labels=[*reading.group_labels],
            rack_label=self.rack_label,
            unread=[*unread, *unread_rows(self._rows)],
            incomplete=incomplete,
        )
        self._freshness = freshness
        self.publication.share_nodes = reading.nodes
        self.publication.publish(
            {name: row.text for name, row in self._rows.items()},
            title=encode(title),
            freshness=encode(freshness),
            **lists,
        )

    def _publish_late(self) -> None:
        self._publish_first_trouble(Trouble.LATE, LATE.format(self.late))

    def _publish_first_trouble(self, trouble: Trouble, message: str) -> None:
        """Unless it is known already what is wrong."""
        if self._freshness.trouble in ("", Trouble.PAUSED):
            self._publish_old(trouble, message)

    def _publish_old(self, trouble: Trouble, message: str) -> None:
        self._freshness = Freshness(read_at=self._freshness.read_at, trouble=trouble, message=message)
        self.publication.share_nodes = None
        self.publication.publish(freshness=encode(self._freshness))


def _lists(found: PageRound) -> Mapping[str, bytes]:
    """Returns what stands beside the map, as JSON."""
    return {
        "waiting": encode(waiting_list(found.facts.waiting, found.reading.cluster.pending)),
        "problems": encode([*map(page_problem, status_report(found.facts).problems)]),
    }


def trouble_of(error: BaseException | None) -> Trouble:
    """Returns what is wrong by the first error that says it: others are raised from it."""
    if isinstance(error, NoCredentialsError):
        return Trouble.LOGIN
    if isinstance(error, UnreachableError):
        return Trouble.UNREACHABLE
    if isinstance(error, ApiError) and error.status == HTTPStatus.UNAUTHORIZED:
        return Trouble.LOGIN
    return Trouble.UNREAD if error is None else trouble_of(error.__cause__)
