"""Row ``engine-shared``: shared pods of each engine beside plain ones, and whose processor they take."""

import asyncio
import statistics
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bench.bench_cluster import bound
from bench.engines import processor
from bench.engines.engine import PLUGIN, Engine
from bench.engines.engine_cluster import EngineCluster
from bench.figures import Figure, Target, at_least, ratio
from bench.percentiles import Percentiles
from bench.schedule_throughput import Throughput

LARGE = 5000
SHOWN = 4
"""Programs of which the processor is told."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One run. ``cpu``: milliseconds a pod by program, creation to deletion."""

    throughput: Throughput
    cpu: dict[str, float]


@dataclass(frozen=True, slots=True)
class Turns:
    """Runs that took turns."""

    plain: Sequence[Taken]
    shared: Sequence[Taken]


def target(nodes: int) -> Target:
    """Returns what shared over plain pods/s of engine Plugin is to reach."""
    return at_least(0.9 if nodes >= LARGE else 0.95)


async def shared(cluster: EngineCluster) -> list[Figure]:
    """Each engine is started anew for each of its turns."""
    plain, ours = defaultdict[str, list[Taken]](list), defaultdict[str, list[Taken]](list)
    for number in range(cluster.size.repeats):
        for engine in cluster.engines:
            async with cluster.running(engine) as running:
                await running.warm_up()
                turns = [(plain[engine.name], cluster.plain), (ours[engine.name], running.run)]
                # What a run leaves behind, the next one pays for: each comes first as often as the other.
                for taken, run in turns if number % 2 == 0 else reversed(turns):
                    taken.append(await measured(run))
    nodes = cluster.layout.nodes
    return [
        figure
        for engine in cluster.engines
        for figure in engine_figures(engine, Turns(plain[engine.name], ours[engine.name]), nodes=nodes)
    ]


async def measured(run: Callable[[], Awaitable[Throughput]]) -> Taken:
    """Raises ``NotMeasuredError`` where not all pods were bound."""
    before = await asyncio.to_thread(processor.read)
    throughput = bound(await run())
    seconds = processor.between(before, await asyncio.to_thread(processor.read))
    return Taken(throughput, {name: 1e3 * cpu / throughput.created for name, cpu in seconds.items()})


def engine_figures(engine: Engine, turns: Turns, *, nodes: int) -> list[Figure]:
    """Medians. Of the other engines there are no targets here: rows of their own have them."""
    plain, ours = _rate(turns.plain), _rate(turns.shared)
    over = ratio(ours, plain, "shared over plain")
    return [
        Figure(f"{engine.name}: plain pods", plain, "pods/s"),
        Figure(f"{engine.name}: shared pods", ours, "pods/s"),
        Figure(
            f"{engine.name}: create to bound of a shared pod, p50",
            _wait(turns.shared, lambda wait: wait.p50),
            "ms",
        ),
        Figure(
            f"{engine.name}: create to bound of a shared pod, p99",
            _wait(turns.shared, lambda wait: wait.p99),
            "ms",
        ),
        _cpu(f"{engine.name}: CPU of all processes, a plain pod", turns.plain),
        _cpu(f"{engine.name}: CPU of all processes, a shared pod", turns.shared),
        Figure(f"{engine.name}: shared over plain", over, target=target(nodes) if engine is PLUGIN else None),
    ]


def _rate(runs: Sequence[Taken]) -> float:
    return statistics.median(run.throughput.rate for run in runs)


def _wait(runs: Sequence[Taken], percentile: Callable[[Percentiles], float]) -> float:
    return 1e3 * statistics.median(percentile(run.throughput.wait) for run in runs)


def _cpu(what: str, runs: Sequence[Taken]) -> Figure:
    """Names the programs that take most."""
    names = {name for run in runs for name in run.cpu}
    medians = {name: statistics.median(run.cpu.get(name, 0.0) for run in runs) for name in names}
    most = sorted(medians, key=lambda name: -medians[name])[:SHOWN]
    shown = ", ".join(f"{name} {medians[name]:.1f}" for name in most)
    return Figure(f"{what} ({shown})", statistics.median(sum(run.cpu.values()) for run in runs), "ms")
