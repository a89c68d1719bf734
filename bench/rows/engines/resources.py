"""Rows ``engine-ordinary`` and ``engine-memory``: what whoever asks for no card pays for the plugin."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from bench.cluster.bench_cluster import bound
from bench.engines.engine import IN_PLACE, PLUGIN, STOCK, Engine
from bench.engines.engine_cluster import EngineCluster
from bench.measuring.figures import Figure, at_least, at_most, ratio
from bench.readings.scheduler_metrics import heap

MORE_MIB = 64.0
MEMORY_RUNS = 3
"""Until the garbage of the start was collected at least once."""
ORDINARY = at_least(0.98)


@dataclass(frozen=True, slots=True)
class Memory:
    """MiB of a kube-scheduler that has placed some runs of pods.

    ``peak``: resident, since its start. What is resident at one moment says when Go collected garbage last,
    and little else.
    """

    peak: float
    heap: float
    """That is in use, right after its garbage was collected."""


async def ordinary(cluster: EngineCluster) -> list[Figure]:
    """Plain pods by the cluster's own scheduler, alone and beside ours; and by one of ours in its place.

    Where it says without, the product's admission policies are not in force either.
    """
    await cluster.prepare()
    alone, beside, stock, ours = list[float](), list[float](), list[float](), list[float]()

    async def without() -> None:
        async with cluster.without_admission():
            alone.append(bound(await cluster.plain()).rate)
            stock.append(await _rate(cluster, STOCK))

    async def with_us() -> None:
        async with cluster.running(PLUGIN) as running:
            await running.warm_up()
            beside.append(bound(await cluster.plain()).rate)
        ours.append(await _rate(cluster, IN_PLACE))

    await cluster.plain()  # the scheduler warms up
    turns = [without, with_us]
    for number in range(cluster.size.repeats):
        for turn in turns if number % 2 == 0 else reversed(turns):
            await turn()
    return [
        *_over("ordinary pods by the cluster's own scheduler", alone, beside, "beside ours (Dedicated)"),
        *_over("ordinary pods by one program", stock, ours, "with the plugin in it (KubeScheduler)"),
    ]


async def _rate(cluster: EngineCluster, engine: Engine) -> float:
    """Returns the rate of plain pods that name the engine's scheduler."""
    async with cluster.running(engine) as running:
        await running.warm_up()
        return bound(await running.run()).rate


def _over(whose: str, without: Sequence[float], with_us: Sequence[float], how: str) -> list[Figure]:
    before, after = statistics.median(without), statistics.median(with_us)
    over = f"{how} over without"
    return [
        Figure(f"{whose}, without", before, "pods/s"),
        Figure(f"{whose}, {how}", after, "pods/s"),
        Figure(over, ratio(after, before, over), target=ORDINARY),
    ]


async def memory(cluster: EngineCluster) -> list[Figure]:
    """The same program with the plugin and without: in turns, each after some runs of pods."""
    stock, ours = list[Memory](), list[Memory]()
    for _ in range(cluster.size.repeats):
        stock.append(await _memory(cluster, STOCK))
        ours.append(await _memory(cluster, PLUGIN))
    return memory_figures(stock, ours, nodes=cluster.layout.nodes)


async def _memory(cluster: EngineCluster, engine: Engine) -> Memory:
    async with cluster.running(engine) as running:
        await running.warm_up()
        for _ in range(MEMORY_RUNS):
            await running.run()
        peak = (await running.use()).peak
        if running.process:
            await running.process.collect_garbage()
        return Memory(peak, heap(await running.scheduler_metrics()))


def memory_figures(stock: Sequence[Memory], ours: Sequence[Memory], *, nodes: int) -> list[Figure]:
    figures = list[Figure]()
    for what, theirs, own in (
        ("resident at most", [run.peak for run in stock], [run.peak for run in ours]),
        ("heap in use", [run.heap for run in stock], [run.heap for run in ours]),
    ):
        before, after = statistics.median(theirs), statistics.median(own)
        figures += [
            Figure(f"kube-scheduler without the plugin, {nodes:,} nodes: {what}", before, "MiB"),
            Figure(f"kube-scheduler with the plugin, {nodes:,} nodes: {what}", after, "MiB"),
            Figure(f"more with the plugin: {what}", after - before, "MiB", at_most(MORE_MIB)),
        ]
    return figures
