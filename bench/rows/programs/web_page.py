"""Row ``web``: what the page of ``kubectl gpushare web`` takes of a browser, and its server of the machine.

The browser draws the page's own made-up cluster, in which cards change. The server reads a cluster of that
size from a stand-in for the API server, and has one page to serve.
"""

import asyncio
import statistics
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.cluster_objects import Layout
from bench.measuring.figures import Figure, NotMeasuredError, at_most
from bench.peers.programs import START_SECONDS, ProgramEndedError, api_server, last_words, program, script
from bench.readings import process_use
from bench.readings.process_use import ProcessUse
from bench.rows.programs.extender_process import described, layout_of
from bench.rows.programs.workplace import Workplace
from tests.fakes.chromium import new_tab, running_chromium
from tests.fakes.web_page import COLORS, READY, Redraws, redraws

from gpushare_localcluster.errors import LocalClusterError

MAX_REDRAW = 50.0
"""Milliseconds."""
MAX_MIB = 150.0
READ_ROUNDS = 3
"""So often the server reads the cluster for a page before its memory counts."""
WITHIN = 120.0
"""Seconds for a page."""
WINDOW = (1440, 900)


@dataclass(frozen=True, slots=True)
class PageUse:
    """What one page takes. ``heap``: what JavaScript keeps; ``private``: all that its process alone has. Both
    in MiB."""

    redraws: Sequence[Redraws]
    """With the map in one colour after the other."""
    heap: float
    private: float


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    pid: int


async def costs(workplace: Workplace) -> list[Figure]:
    layout = layout_of(workplace.size)
    async with AsyncExitStack() as stack:
        try:
            devtools = await asyncio.to_thread(stack.enter_context, running_chromium())
        except LocalClusterError as error:
            raise NotMeasuredError(f"no Chromium: {error}") from error
        served = await stack.enter_async_context(_serving(workplace.subfolder("web"), layout))
        page = await _page_use(devtools, served.url, layout.nodes)
        server = await _server_use(devtools, served, layout.nodes)
    return figures_of(page, server, layout)


def figures_of(page: PageUse, server: ProcessUse, layout: Layout) -> list[Figure]:
    changes = [taken for redraws in page.redraws for taken in redraws.change]
    maps = [taken for redraws in page.redraws for taken in redraws.map]
    drawn = f"{layout.nodes:,} nodes x {layout.cards} cards"
    return [
        Figure(
            f"redraw after a change, {drawn}: median", statistics.median(changes), "ms", at_most(MAX_REDRAW)
        ),
        Figure("the same: longest", max(changes), "ms", at_most(MAX_REDRAW)),
        Figure("the same: shortest", min(changes), "ms"),
        Figure("the map alone: median", statistics.median(maps), "ms"),
        Figure(f"page, {drawn}", page.private, "MiB", at_most(MAX_MIB)),
        Figure("its heap of JavaScript", page.heap, "MiB"),
        Figure(f"server, {described(layout)}, one page", server.resident, "MiB", at_most(MAX_MIB)),
        Figure("server: peak", server.peak, "MiB"),
    ]


@asynccontextmanager
async def _serving(folder: Path, layout: Layout) -> AsyncIterator[Served]:
    """Runs the command beside a stand-in for the API server that has the cluster."""
    log = folder / "web.log"
    async with (
        api_server(folder, nodes=layout.nodes, pods_per_node=layout.pods_per_node) as kubeconfig,
        program(
            script("kubectl-gpushare"), "web", "--kubeconfig", kubeconfig, log=log, announces=True
        ) as process,
    ):
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            line = await process.stdout.readline()
        if not line:
            raise ProgramEndedError(f"kubectl gpushare web ended: {last_words(log)}")
        yield Served(line.decode().strip(), process.pid)


async def _page_use(devtools: str, url: str, nodes: int) -> PageUse:
    async with new_tab(devtools) as tab:
        await tab.resize(*WINDOW)
        await tab.open(f"{url}?demo={nodes}")
        await tab.until(READY, within=WITHIN)
        taken = [await redraws(tab, color) for color in COLORS]
        return PageUse(taken, await tab.heap() / 2**20, await tab.memory() / 2**20)


async def _server_use(devtools: str, served: Served, nodes: int) -> ProcessUse:
    """Each reading is a version of what the page shows."""
    async with new_tab(devtools) as tab:
        await tab.open(served.url)
        await tab.until(f"{READY} && gpusharePage.cluster.nodes.size === {nodes}", within=WITHIN)
        version = await tab.evaluate("gpusharePage.cluster.version")
        await tab.until(f"gpusharePage.cluster.version >= {version + READ_ROUNDS}", within=WITHIN)
        return process_use.of_process(served.pid)
