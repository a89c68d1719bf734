"""Rows ``engine-shared``: shared pods of an engine beside plain ones, and whose processor they take."""

import asyncio
import statistics
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bench.engines import processor
from bench.engines.engine import Engine, judged
from bench.engines.engine_cluster import EngineCluster
from bench.engines.running_engine import RUN_SECONDS
from bench.measuring.figures import Figure, Target, at_least, ratio
from bench.measuring.percentiles import Percentiles
from bench.schedule_throughput import Throughput

LARGE = 5000
SHOWN = 4
"""Programs of which the processor is told."""


@dataclass(frozen=True, slots=True)
class Taken:
    """One run. ``rate``: bound pods a second; ``cpu``: by program, milliseconds a pod until it is deleted."""

    rate: float
    wait: Percentiles | None = None
    """Seconds from create to bound; None where no pod was bound."""
    cpu: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Turns:
    """Runs that took turns."""

    plain: Sequence[Taken]
    shared: Sequence[Taken]


def target(nodes: int) -> Target:
    """Returns what shared over plain pods/s of engine Plugin is to reach."""
    return at_least(0.9 if nodes >= LARGE else 0.95)


async def shared(cluster: EngineCluster, *, engine: Engine) -> list[Figure]:
    """The engine runs all the while; plain pods are placed by the cluster's own kube-scheduler."""
    plain, ours = list[Taken](), list[Taken]()
    async with cluster.running(engine) as running:
        await running.warm_up()
        await cluster.plain()  # the other scheduler warms up
        turns = [(plain, cluster.plain), (ours, running.run)]
        for number in range(cluster.size.repeats):
            # What a run leaves behind, the next one pays for: each comes first as often as the other.
            for taken, run in turns if number % 2 == 0 else reversed(turns):
                taken.append(await measured(run))
    return engine_figures(engine, Turns(plain, ours), nodes=cluster.layout.nodes)


async def measured(run: Callable[[], Awaitable[Throughput]]) -> Taken:
    """Where not all pods are bound in time, the rate is that of all the time there was."""
    before = await asyncio.to_thread(processor.read)
    try:
        found = await run()
    except TimeoutError:
        return Taken(0.0)
    seconds = processor.between(before, await asyncio.to_thread(processor.read))
    cpu = {name: 1e3 * cpu / found.created for name, cpu in seconds.items()}
    return Taken(found.within(RUN_SECONDS), found.wait, cpu)


def engine_figures(engine: Engine, turns: Turns, *, nodes: int) -> list[Figure]:
    """Medians. Of other engines than Plugin nothing is asked here."""
    plain, ours = _rate(turns.plain), _rate(turns.shared)
    over = "shared over plain"
    return judged(
        engine,
        [
            Figure("plain pods", plain, "pods/s"),
            Figure("shared pods", ours, "pods/s"),
            *_waits("create to bound of a shared pod", turns.shared),
            _cpu("CPU of all processes, a plain pod", turns.plain),
            _cpu("CPU of all processes, a shared pod", turns.shared),
            Figure(over, ratio(ours, plain, over), target=target(nodes)),
        ],
    )


def _rate(runs: Sequence[Taken]) -> float:
    return statistics.median(run.rate for run in runs)


def _waits(what: str, runs: Sequence[Taken]) -> Iterator[Figure]:
    if waits := [run.wait for run in runs if run.wait]:
        yield Figure(f"{what}, p50", 1e3 * statistics.median(wait.p50 for wait in waits), "ms")
        yield Figure(f"{what}, p99", 1e3 * statistics.median(wait.p99 for wait in waits), "ms")


def _cpu(what: str, runs: Sequence[Taken]) -> Figure:
    """Names the programs that take most."""
    names = {name for run in runs for name in run.cpu}
    medians = {name: statistics.median(run.cpu.get(name, 0.0) for run in runs) for name in names}
    most = sorted(medians, key=lambda name: -medians[name])[:SHOWN]
    shown = ", ".join(f"{name} {medians[name]:.1f}" for name in most)
    return Figure(f"{what} ({shown})", statistics.median(sum(run.cpu.values()) for run in runs), "ms")
