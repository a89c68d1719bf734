"""Rows ``engine-storm``, ``engine-one-node``, ``engine-churn`` and ``engine-bursts``: no engine may err."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bench.cluster.cluster_objects import NAMESPACE
from bench.cluster.ground import Ground
from bench.engines.engine import Engine, judged
from bench.engines.engine_cluster import EngineCluster
from bench.engines.nodes import Cards, added
from bench.engines.running_engine import RunningEngine
from bench.measuring.figures import Figure, at_least, at_most
from bench.readings.card_sums import overcommitted, shares_of
from bench.readings.scheduler_metrics import refused_attempts
from bench.rows.engines.preemption import SETTLED_SECONDS, only_on
from bench.schedule_throughput import measure

from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json

HALVES = 16
HALF = 8
BURST_SECONDS = 30.0
RELEASE_SECONDS = 6.0
"""What pods had that nobody ever reported counts for up to 5 s after they are gone."""


@dataclass(frozen=True, slots=True)
class Burst:
    """How one burst ended."""

    bound: int
    full: int
    """Cards with two halves."""
    over: int
    """Cards given out beyond their size."""
    refused: float
    """Attempts that found no card."""


async def on_engine(
    cluster: EngineCluster, *, engine: Engine, measured: Callable[[Ground], Awaitable[list[Figure]]]
) -> list[Figure]:
    """Returns the figures of a row with the engine."""
    async with cluster.running(engine) as running:
        await running.warm_up()
        return judged(engine, await measured(running))


async def bursts(cluster: EngineCluster, *, engine: Engine) -> list[Figure]:
    """Halves of cards for all cards of one node, at once and again and again."""
    async with cluster.running(engine) as running:
        await running.warm_up()
        async with added(cluster.client, cluster.layout.nodes, Cards()) as node:
            await node.report({})
            await asyncio.sleep(SETTLED_SECONDS)
            found = [await _burst(running, node.index) for _ in range(cluster.size.bursts)]
    return judged(engine, burst_figures(found))


async def _burst(running: RunningEngine, index: int) -> Burst:
    seen = list[Json]()

    async def look(selector: str) -> None:
        pages = running.client.pages(paths.pods(NAMESPACE), limit=HALVES, label_selector=selector)
        seen.extend([pod async for page in pages for pod in page.items])

    def asking(pod: Json) -> Json:
        return {**pod, "spec": {**pod["spec"], **only_on(index)}}

    before = refused_attempts(await running.scheduler_metrics())
    found = await measure(
        running.client,
        pods=HALVES,
        units=HALF,
        scheduler=running.scheduler_name,
        deadline=BURST_SECONDS,
        look=look,
        asking=asking,
    )
    refused = refused_attempts(await running.scheduler_metrics()) - before
    await asyncio.sleep(RELEASE_SECONDS)
    return burst_of(found.bound, seen, refused=refused)


def burst_of(bound: int, pods: Sequence[Json], *, refused: float) -> Burst:
    """``pods``: of the burst, when all had their time."""
    halves = Counter(card for pod in pods for card in shares_of(pod))
    full = sum(count == 2 for count in halves.values())
    return Burst(bound, full, len(overcommitted(pods, Cards().card_units)), refused)


def burst_figures(found: Sequence[Burst]) -> list[Figure]:
    count, cards = len(found), Cards().cards
    exact = sum(burst.bound == HALVES and burst.full == cards for burst in found)
    return [
        Figure(
            f"of {count} bursts of {HALVES} halves, all bound and two on each card",
            exact,
            "",
            at_least(count),
        ),
        Figure("cards given out beyond their size", sum(burst.over for burst in found), "cards", at_most(0)),
        Figure("attempts in vain", sum(burst.refused for burst in found), "", at_most(0)),
    ]
