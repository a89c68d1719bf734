"""One gathering for all browsers: it reads, decides, and publishes, as long as somebody looks."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from http import HTTPStatus
from typing import Never

import msgspec

from gpushare_cli.decide.status import StatusReport, status_report
from gpushare_cli.decide.web.node_rows import PageRow, node_rows
from gpushare_cli.decide.web.page_lists import Freshness, PageTitle, page_problem, waiting_list
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
TROUBLES = (CannotLookError, NoCredentialsError, ApiError, UnreachableError)

encode = msgspec.json.encode


class Publication:
    """What is published, and who waits for it."""

    def __init__(self) -> None:
        self.state = PageState()
        self.share_nodes: Mapping[str, msgspec.Raw] = {}
        """GPUShareNodes, from which the figures are."""
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
    _rows: dict[str, PageRow] = field(default_factory=dict)
    _read_at: str = ""

    async def first(self) -> None:
        """Raises one of ``TROUBLES``: what is wrong from the start stays wrong."""
        await self._round()

    async def run(self) -> Never:
        """Never ends. What cannot be read is published, and tried again."""
        while True:
            began = time.process_time()
            await self.publication.wanted.wait()
            try:
                await self._round()
            except TROUBLES as error:
                self._publish_trouble(error)
                await self.reader.close()
            busy = time.process_time() - began
            await asyncio.sleep(max(self.pause, busy / BUSY_SHARE))

    async def _round(self) -> None:
        found = await self.reader.read()
        rows, report = await asyncio.to_thread(self._decided, found)
        self._rows, self._read_at = rows, rfc3339(self.now())
        self.publication.share_nodes = found.reading.nodes
        self.publication.publish(
            {name: row.text for name, row in rows.items()},
            title=encode(self._title(found)),
            waiting=encode(waiting_list(found.facts.waiting, found.reading.cluster.pending)),
            problems=encode([*map(page_problem, report.problems)]),
            freshness=encode(Freshness(read_at=self._read_at)),
        )
        give_back()

    def _decided(self, found: PageRound) -> tuple[dict[str, PageRow], StatusReport]:
        return node_rows(found.reading, self._rows), status_report(found.facts)

    def _title(self, found: PageRound) -> PageTitle:
        return PageTitle(
            server=self.server,
            version=VERSION,
            group_labels=[*found.reading.group_labels],
            rack_label=self.rack_label,
            unread=found.unread,
        )

    def _publish_trouble(self, error: Exception) -> None:
        kind = "Login" if is_login(error) else "Unreachable"
        self.publication.publish(
            freshness=encode(Freshness(read_at=self._read_at, trouble=kind, message=str(error)))
        )


def is_login(error: BaseException | None) -> bool:
    """Whether a new login would help."""
    if isinstance(error, NoCredentialsError):
        return True
    if isinstance(error, ApiError):
        return error.status == HTTPStatus.UNAUTHORIZED
    return error is not None and is_login(error.__cause__)
