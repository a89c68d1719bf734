"""One extender beside a stand-in for the API server that has a whole cluster."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import filter_latency
from bench.cluster.cluster_objects import Layout
from bench.measuring.size import Size
from bench.peers.programs import api_server, free_port, last_words, program, script, while_running
from bench.readings import process_use
from bench.readings.process_use import ProcessUse

from gpushare_hostctl.decide.scheduler import key_pairs

UNITS = 4
SAMPLE = 500
"""Names that kube-scheduler sends of 5,000 nodes."""
LISTED_A_SECOND = 200.0
"""So many nodes, with their pods, an extender reads at least."""


@dataclass(frozen=True, slots=True)
class Extender:
    """One that has given its first right answer."""

    caller: filter_latency.Caller
    layout: Layout
    pid: int
    started: float
    """Seconds from the start of its process until then."""
    kubeconfig: Path
    """Of the stand-in for the API server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtenderUse:
    """What an extender needs."""

    started: float
    """Seconds from the start of its process to its first right answer."""
    before: ProcessUse
    """With that answer alone given."""
    after: ProcessUse
    """With all names filtered many times."""
    every: filter_latency.FilterLatency
    """Of all names."""
    few: filter_latency.FilterLatency
    """Of as many as kube-scheduler sends."""


async def measure_extender(folder: Path, size: Size) -> ExtenderUse:
    """Starts one and has it filter.

    Raises:
        TimeoutError: it gave no right answer in time.
        WrongAnswerError: it gave a wrong one later.
        ProgramEndedError: it ended.
    """
    async with running(folder, layout_of(size)) as extender:
        nodes = extender.layout.nodes
        before = process_use.of_process(extender.pid)
        every = await called(extender, nodes, size.calls)
        after = process_use.of_process(extender.pid)
        few = await called(extender, min(SAMPLE, nodes), size.calls)
    return ExtenderUse(started=extender.started, before=before, after=after, every=every, few=few)


async def called(extender: Extender, names: int, count: int) -> filter_latency.FilterLatency:
    """Has the first ``names`` nodes filtered ``count`` times."""
    return await asyncio.to_thread(
        filter_latency.measure, extender.caller, extender.layout, names=names, units=UNITS, count=count
    )


def layout_of(size: Size) -> Layout:
    return Layout(nodes=size.book_nodes, pods_per_node=size.book_pods)


@asynccontextmanager
async def running(folder: Path, layout: Layout) -> AsyncIterator[Extender]:
    """An extender beside a stand-in for the API server that has the cluster. ``folder`` is its own."""
    server, trusted, client = _key_files(folder)
    tls = filter_latency.mutual_tls(client=client, authorities=trusted)
    port, log = free_port(), folder / "extender.log"
    async with api_server(folder, nodes=layout.nodes, pods_per_node=layout.pods_per_node) as kubeconfig:
        options = ("--listen", f"127.0.0.1:{port}", "--kubeconfig", kubeconfig)
        keys = ("--tls-cert", server, "--client-ca", trusted)
        begun = time.perf_counter()
        async with program(script("gpushare-extender"), *options, *keys, log=log) as process:
            with contextlib.closing(filter_latency.Caller(f"https://127.0.0.1:{port}", tls)) as caller:
                await while_running(process, _first_right_answer(caller, layout, log), log)
                started = time.perf_counter() - begun
                yield Extender(caller, layout, process.pid, started, kubeconfig)


async def _first_right_answer(caller: filter_latency.Caller, layout: Layout, log: Path) -> None:
    """Raises ``TimeoutError``."""
    try:
        await asyncio.to_thread(
            filter_latency.wait_for_right_answer,
            caller,
            layout,
            names=layout.nodes,
            units=UNITS,
            seconds=filter_latency.DEADLINE + layout.nodes / LISTED_A_SECOND,
        )
    except (filter_latency.WrongAnswerError, OSError) as error:
        raise TimeoutError(f"no right answer ({error}); the extender said last: {last_words(log)}") from error


def _key_files(folder: Path) -> tuple[Path, Path, Path]:
    """Returns where the extender's pair, the authorities and the scheduler's pair are."""
    files = key_pairs.for_pod(datetime.now(UTC)).files()
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return (
        folder / key_pairs.SERVER_FILE,
        folder / key_pairs.TRUSTED_FILE,
        folder / key_pairs.CLIENT_FILE,
    )


def described(layout: Layout) -> str:
    pods = sum(len(layout.pods(index)) for index in range(layout.nodes))
    return f"{layout.nodes:,} nodes and {pods:,} pods"
