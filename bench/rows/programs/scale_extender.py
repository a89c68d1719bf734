"""Rows ``scale`` of the extender: what grows with the cluster, and how long kube-scheduler waits meanwhile.

The sizes go beyond those that Kubernetes itself is made for: docs/scale.md has what to make of the figures.
"""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.cluster.cluster_objects import Layout, PlacedPod, node_name
from bench.filter_latency import FilterLatency, filter_request
from bench.measuring.figures import Figure, at_most
from bench.measuring.percentiles import Percentiles
from bench.measuring.size import Size
from bench.peers.api_server import EXPIRE, SENT, list_bytes, metadata_of, watch_bytes, watches_begun
from bench.readings import process_use
from bench.rows.programs import workplace
from bench.rows.programs.extender_process import SAMPLE, UNITS, Extender, called, described, running

from gpushare_core.audit.difference import LASTING_SECONDS
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.text.json_object import Json

MIB = 2**20
SCHEDULER_WAITS = 5000.0
"""Milliseconds: ``httpTimeout`` of the extender in kube-scheduler's configuration, as hostctl writes it."""
EVENTS_A_SECOND = 100.0
"""Of pods; at 50,000 nodes each pod of 400,000 would live for more than five hours."""
CHANGES = 3
"""Of each pod between its coming and its end: that its containers start, run, and end."""
ASK_SECONDS = 0.01
"""Between two questions of the one who asks all the time."""
POLL_SECONDS = 0.05
SEEN_SECONDS = 120.0
REST_SECONDS = 5.0
AT_REST = 0.05
"""Of a core: what goes on when there is nothing to do."""
AUDITED_A_SECOND = 50.0
"""So many nodes at least: a third of what the pauses of the audit alone allow."""
COLLECTIONS = (paths.PODS, paths.SHARE_NODES)


@dataclass(frozen=True, slots=True)
class LargeBooks:
    """An extender with a whole cluster in its books."""

    extender: Extender
    size: Size

    @property
    def nodes(self) -> int:
        return self.extender.layout.nodes


@asynccontextmanager
async def entered(size: Size, nodes: int) -> AsyncIterator[LargeBooks]:
    async with (
        workplace.entered(size) as place,
        running(place.subfolder("extender"), Layout(nodes=nodes, pods_per_node=size.book_pods)) as extender,
    ):
        yield LargeBooks(extender, size)


def sampled(nodes: int) -> int:
    """Returns how many nodes that fit kube-scheduler looks for among ``nodes``, as long as nobody has set its
    ``percentageOfNodesToScore``. Source: numFeasibleNodesToFind of kube-scheduler."""
    share = max(5, 50 - nodes // 125)
    return min(nodes, max(100, nodes * share // 100))


async def books(large: LargeBooks) -> list[Figure]:
    """What the books take, and what it took to fill them."""
    extender = large.extender
    use, sent = process_use.of_process(extender.pid), await asked(extender, SENT)
    what = described(extender.layout)
    return [
        Figure(f"extender, {what}", use.resident, "MiB"),
        Figure("its peak until the first right answer", use.peak, "MiB"),
        Figure("start to first right answer", extender.started, "s"),
        Figure("processor until then", use.cpu, "s"),
        *(
            Figure(f"read for it: {collection}", sent[list_bytes(collection)] / MIB, "MiB")
            for collection in COLLECTIONS
        ),
    ]


async def audit(large: LargeBooks) -> list[Figure]:
    """What goes on after a start, when every node is to be audited."""
    await asyncio.sleep(LASTING_SECONDS)
    async with asking(large.extender, min(SAMPLE, large.nodes)) as taken:
        share = await share_of_core(large.extender.pid, large.size.scale_seconds)
    return [
        Figure("processor of the extender while it audits every node", 100 * share, "% of a core"),
        *waits("filter meanwhile", taken),
    ]


async def filters(large: LargeBooks) -> list[Figure]:
    """Of as many names as peers are measured with, as kube-scheduler sends at this size, and of all."""
    sizes = sorted({min(SAMPLE, large.nodes), sampled(large.nodes), large.nodes})
    found = [await called(large.extender, names, large.size.calls) for names in sizes]
    return [figure for taken in found for figure in latency_figures(taken)]


def latency_figures(latency: FilterLatency) -> Iterable[Figure]:
    what, taken = f"filter, {latency.names:,} names", latency.milliseconds
    yield Figure(f"{what}: p50", taken.p50, "ms")
    yield Figure(f"{what}: p99", taken.p99, "ms")
    yield Figure(f"{what}: request", latency.request_size / 1024, "KiB")
    yield Figure(f"{what}: answer", latency.answer_size / 1024, "KiB")


async def events(large: LargeBooks) -> list[Figure]:
    """What pods cost that come, change and go anywhere in the cluster, over what goes on without them."""
    extender = large.extender
    at_rest = await rested(extender.pid, within=SEEN_SECONDS + large.nodes / AUDITED_A_SECOND)
    before, sent, begun = process_use.of_process(extender.pid), await asked(extender, SENT), time.monotonic()
    made = await pods_come_and_go(extender, large.size.scale_seconds)
    after, took = process_use.of_process(extender.pid), time.monotonic() - begun
    bytes_sent = (await asked(extender, SENT))[watch_bytes(paths.PODS)] - sent.get(watch_bytes(paths.PODS), 0)
    spent = after.cpu - before.cpu - at_rest * took
    return [
        Figure("pod events", made),
        Figure("processor of the extender for one", 1e3 * max(0.0, spent) / made, "ms"),
        Figure("processor at rest, before", 100 * at_rest, "% of a core"),
        Figure("one event on the wire", bytes_sent / made / 1024, "KiB"),
        Figure("resident after them", after.resident, "MiB"),
    ]


async def relist(large: LargeBooks) -> list[Figure]:
    """What it costs when the API server has forgotten where the watches were: both are read anew at once,
    while kube-scheduler goes on asking."""
    extender = large.extender
    process_use.reset_peak(extender.pid)
    before, sent, begun = process_use.of_process(extender.pid), await asked(extender, SENT), time.monotonic()
    async with asking(extender, min(SAMPLE, large.nodes)) as taken:
        await asked(extender, EXPIRE)
        await until(
            lambda: has_begun_anew(extender, sent),
            what="the watches begin anew",
            seconds=SEEN_SECONDS + large.nodes / 100,
        )
        took = time.monotonic() - begun
    after, now = process_use.of_process(extender.pid), await asked(extender, SENT)
    read = sum(now[list_bytes(collection)] - sent[list_bytes(collection)] for collection in COLLECTIONS)
    return [
        Figure("relist of pods and GPUShareNodes", took, "s"),
        Figure("processor of the extender for it", after.cpu - before.cpu, "s"),
        Figure("read", read / MIB, "MiB"),
        Figure("peak meanwhile", after.peak, "MiB"),
        Figure("resident before it", before.resident, "MiB"),
        *waits("filter meanwhile", taken, longest=SCHEDULER_WAITS),
    ]


async def has_begun_anew(extender: Extender, before: Json) -> bool:
    """Returns whether each collection is watched again: what was listed is in the ledger by then."""
    now = await asked(extender, SENT)
    return all(
        now[watches_begun(collection)] > before[watches_begun(collection)] for collection in COLLECTIONS
    )


def waits(what: str, taken: list[float], *, longest: float | None = None) -> Iterable[Figure]:
    """``taken``: milliseconds of calls. ``longest``: how long one may take."""
    found = Percentiles.of(taken)
    yield Figure(f"{what}: p50", found.p50, "ms")
    yield Figure(f"{what}: longest", found.highest, "ms", None if longest is None else at_most(longest))


async def rested(pid: int, *, within: float) -> float:
    """Returns which part of a core the process takes once its audit of all nodes is done.

    Raises:
        TimeoutError: it goes on working.
    """
    deadline = time.monotonic() + within
    while (share := await share_of_core(pid, REST_SECONDS)) > AT_REST:
        if time.monotonic() > deadline:
            raise TimeoutError(f"after {within:g} s without work it takes {share:.0%} of a core")
    return share


async def share_of_core(pid: int, seconds: float) -> float:
    """Returns which part of a core the process takes during so many ``seconds``."""
    before, begun = process_use.of_process(pid), time.monotonic()
    await asyncio.sleep(seconds)
    return (process_use.of_process(pid).cpu - before.cpu) / (time.monotonic() - begun)


@asynccontextmanager
async def asking(extender: Extender, names: int) -> AsyncIterator[list[float]]:
    """Has the first ``names`` nodes filtered again and again while entered. What is yielded has the
    milliseconds of each call, once that is over."""
    taken: list[float] = []
    ends = threading.Event()
    task = asyncio.create_task(asyncio.to_thread(_ask, extender, names, taken, ends))
    try:
        yield taken
    finally:
        ends.set()
        await task


def _ask(extender: Extender, names: int, taken: list[float], ends: threading.Event) -> None:
    """A call that is not answered at all counts with the time after which it was given up."""
    offered = [node_name(index) for index in range(names)]
    while not taken or not ends.wait(ASK_SECONDS):
        begun = time.perf_counter()
        try:
            extender.caller.filter(filter_request(offered, units=UNITS))
        except TimeoutError:
            extender.caller.close()
        taken.append(1e3 * (time.perf_counter() - begun))


async def pods_come_and_go(extender: Extender, seconds: float) -> int:
    """Has pods come, change and go, evenly, for so many ``seconds``. Returns the number of events, once the
    extender has seen them all."""
    lives = max(1, round(seconds * EVENTS_A_SECOND / (CHANGES + 2)))
    begun = time.monotonic()
    async with KubeClient(from_kubeconfig(extender.kubeconfig)) as client, asyncio.TaskGroup() as group:
        for number in range(lives):
            group.create_task(_life(client, passing_pod(extender.layout, number)))
            await asyncio.sleep(max(0.0, begun + (number + 1) * seconds / lives - time.monotonic()))
    last = passing_pod(extender.layout, lives - 1)
    await until(partial(is_gone, extender, last), what=f"{last.name} is gone", seconds=SEEN_SECONDS)
    return lives * (CHANGES + 2)


def passing_pod(layout: Layout, number: int) -> PlacedPod:
    """Returns a pod beside those of ``layout``, on another node than those before: one that has room."""
    open_nodes = [index for index in range(layout.full_every) if not layout.is_full(index)]
    groups = max(1, layout.nodes // layout.full_every)
    group, place = number % groups, number // groups % len(open_nodes)
    index = min(group * layout.full_every + open_nodes[place], layout.nodes - 1)
    return PlacedPod(index, number % layout.cards, 1, 1000 + number)


async def _life(client: KubeClient, pod: PlacedPod) -> None:
    body = metadata_of(pod, f"uid-{pod.name}") | {"spec": {"nodeName": node_name(pod.node)}}
    path = f"{paths.pods(body['metadata']['namespace'])}/{pod.name}"
    await client.create(path.rpartition("/")[0], body)
    for number in range(CHANGES):
        await client.merge(path, {"metadata": {"labels": {"bench.example/change": str(number)}}})
    await client.delete(path)


async def is_gone(extender: Extender, pod: PlacedPod) -> bool:
    """Returns whether nothing of its node counts for ``pod``."""
    node = await asyncio.to_thread(extender.caller.inspect, node_name(pod.node))
    return all(listed["name"] != pod.name for card in node["cards"] for listed in card["pods"])


async def asked(extender: Extender, path: str) -> Json:
    """Returns what the stand-in for the API server answers."""
    async with KubeClient(from_kubeconfig(Path(extender.kubeconfig))) as client:
        return await client.get(path)


async def until(condition: Callable[[], Awaitable[bool]], *, what: str, seconds: float) -> None:
    """Raises ``TimeoutError`` with ``what`` was waited for."""
    deadline = time.monotonic() + seconds
    while not await condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:g} s for this: {what}")
        await asyncio.sleep(POLL_SECONDS)
