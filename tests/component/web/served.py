"""The page as ``kubectl gpushare web`` serves it, of a fake cluster, with shorter times."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import msgspec
from tests.fakes.chromium import Tab
from tests.fakes.web_cluster import WebCluster
from tests.fakes.web_page import READY

from gpushare_cli.gather.lists import ALL_PODS, PodScope
from gpushare_cli.gather.web.page_reading import PageReader
from gpushare_cli.web.gathering import Gathering, Publication
from gpushare_cli.web.server import PageServer, serving
from gpushare_core.kube.client import KubeClient
from gpushare_core.process.clock import utc_now
from gpushare_core.text.json_object import Json

PAUSE = 0.1
WITHIN = 60.0


@asynccontextmanager
async def served(
    cluster: WebCluster,
    *,
    rack_label: str = "",
    scope: PodScope = ALL_PODS,
    between: float = 0.05,
    late: float = WITHIN,
    timeout: float = WITHIN,
) -> AsyncIterator[PageServer]:
    async with KubeClient(cluster.credentials(), timeout=timeout) as client:
        reader = PageReader(client=client, now=utc_now, rack_label=rack_label, scope=scope)
        publication = Publication()
        gathering = Gathering(
            reader=reader,
            publication=publication,
            server="https://cluster.example",
            rack_label=rack_label,
            now=utc_now,
            pause=PAUSE,
            late=late,
        )
        await gathering.first()
        async with serving(client, publication, port=0, now=utc_now) as page:
            page.between = between
            running = asyncio.create_task(gathering.run())
            try:
                yield page
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running
                await reader.close()


@asynccontextmanager
async def opened(cluster: WebCluster, tab: Tab) -> AsyncIterator[PageServer]:
    """With the tab on the page, which has its first figures."""
    async with served(cluster) as page:
        await tab.open(page.guard.url)
        await tab.until(READY)
        yield page


class Stream:
    """What a browser gets: a snapshot, then what changes."""

    def __init__(self, snapshot: Json, response: aiohttp.ClientResponse) -> None:
        self.snapshot = snapshot
        self.response = response

    async def message(self) -> Json:
        """Returns what changed next."""
        async with asyncio.timeout(WITHIN):
            while line := await self.response.content.readline():
                if line.startswith(b"data: {"):
                    found: Json = msgspec.json.decode(line[6:])
                    return found
        raise AssertionError("the stream has ended")

    async def until_part(self, part: str, key: str, value: object) -> Json:
        """Returns the first message in which a part has this value."""
        while True:
            message = await self.message()
            if message["parts"].get(part, {}).get(key) == value:
                return message


@asynccontextmanager
async def stream(page: PageServer) -> AsyncIterator[Stream]:
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(timeout=timeout, read_bufsize=2**24) as session:
        async with session.get(f"{page.guard.url}snapshot") as response:
            snapshot = await response.json()
        async with session.get(f"{page.guard.url}events?since={snapshot['version']}") as response:
            assert response.status == 200, await response.text()
            yield Stream(snapshot, response)
