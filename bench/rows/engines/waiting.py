"""Rows ``engine-waiting`` and ``engine-attempts``: pods that cannot be bound, while others come and go."""

import asyncio
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench.cluster.bench_cluster import UNITS
from bench.cluster.cluster_objects import NAMESPACE, PlacedPod, pending_pod
from bench.cluster.waiting_pods import LABEL, Unfit, refused, remove_pod, too_large_for_cards, too_many_cpus
from bench.engines.access import Access
from bench.engines.engine import PLUGIN, Engine, judged
from bench.engines.engine_cluster import EngineCluster
from bench.engines.nodes import NOBODY, AddedNode, Cards, added, bound
from bench.engines.running_engine import RUN_SECONDS, RunningEngine
from bench.measuring.figures import Figure, at_least, at_most, ratio
from bench.readings.scheduler_metrics import queued_between, refused_attempts, waiting_to_be_tried
from bench.schedule_throughput import Throughput

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient

PODS = "pods/s"
RUNS = 2
"""Of pods of each kind that come and go."""
SETTLED_SECONDS = 8.0
"""Units that nobody ever reported are free up to 5 s after their pod is gone: then pods are tried, too."""
REST_SECONDS = 60.0
"""For a queue that may never be at rest."""
POLL_SECONDS = 0.5
ONE_CARD_UNITS = 13
"""Less than a card has, and more than any card has left: one pod more or less decides."""
FREED = 4
"""Cards that become free while pods wait for one, in each of two orders."""
STEP_SECONDS = 1.0
"""Between two steps that free a card: the scheduler has heard of one before the other happens."""
FREED_SECONDS = 60.0

Runs = Mapping[str, Sequence[float]]
Step = Callable[[AddedNode], Awaitable[None]]
Metrics = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class Situation:
    """Who waits, and who comes and goes meanwhile. ``metrics``: of the scheduler of those who wait."""

    name: str
    unfit: Unfit
    run: Callable[[], Awaitable[Throughput]]
    metrics: Metrics


def _fit_no_card(scheduler: str) -> Unfit:
    """Pods like those of a cluster that is full: each could have a card of every node, were it free."""
    return too_large_for_cards(scheduler, units=ONE_CARD_UNITS)


async def beside(cluster: EngineCluster, *, count: int) -> list[Figure]:
    """The rate beside ``count`` pods that fit no card, and beside as many that ask for too much CPU."""
    rates = defaultdict[str, list[float]](list)
    client, size = cluster.client, cluster.size
    async with cluster.running(PLUGIN) as running:
        await running.warm_up()
        ours = running.scheduler_name
        situations = (
            Situation("cards", _fit_no_card(ours), running.run, running.scheduler_metrics),
            Situation("CPU", too_many_cpus(ours), running.run, running.scheduler_metrics),
            Situation(
                "plain", too_many_cpus("default-scheduler"), cluster.plain, cluster.base.scheduler_metrics
            ),
        )
        for number in range(size.waiting_rounds):
            for situation in situations if number % 2 == 0 else reversed(situations):
                async with refused(client, count, situation.unfit):
                    await _at_rest(situation.metrics)
                    rates[situation.name] += [await _rate(situation.run) for _ in range(size.repeats)]
    return waiting_figures(rates, count=count)


async def _rate(run: Callable[[], Awaitable[Throughput]]) -> float:
    try:
        return (await run()).within(RUN_SECONDS)
    except TimeoutError:
        return 0.0


def waiting_figures(rates: Runs, *, count: int) -> list[Figure]:
    """``rates``: of shared pods beside those that lack ``cards`` or ``CPU``, of ``plain`` ones beside CPU."""
    cards, cpu, plain = (statistics.median(rates[name]) for name in ("cards", "CPU", "plain"))
    over_plain = f"beside {count:,}: over plain pods beside those"
    over_cpu = f"beside {count:,}: over shared pods beside those that lack CPU"
    # Each deletion has kube-scheduler try pods that lack CPU: beside thousands it may come to nothing else.
    compared = [Figure(over_cpu, cards / cpu, target=at_least(0.9))] if cpu else []
    return [
        Figure(f"shared pods beside {count:,} that fit no card", cards, PODS),
        Figure(f"shared pods beside {count:,} that lack CPU, by one scheduler", cpu, PODS),
        Figure(f"plain pods beside {count:,} plain ones that lack CPU", plain, PODS),
        *compared,
        Figure(over_plain, ratio(cards, plain, over_plain), target=at_least(0.9)),
    ]


async def attempts(cluster: EngineCluster, *, engine: Engine) -> list[Figure]:
    """How often waiting pods are tried in vain: while others come and go, and while cards become free."""
    count, client = cluster.size.waiting[0], cluster.client
    async with cluster.running(engine) as running:
        await running.warm_up()
        async with refused(client, count, _fit_no_card(running.scheduler_name)):
            before = await _at_rest(running.scheduler_metrics)
            for _ in range(RUNS):
                await running.run()
                await cluster.plain()
            after = await _at_rest(running.scheduler_metrics)
        freed = await _while_cards_become_free(running, await cluster.access(engine), count)
    others = 2 * RUNS * cluster.size.pods
    what = f"attempts of {count:,} waiting pods while {others:,} others are bound and deleted"
    return judged(engine, [in_vain(what, before, after), *freed])


def in_vain(what: str, before: str, after: str) -> Figure:
    """Returns how many attempts found no node between two readings of metrics, and what had pods tried."""
    tried = refused_attempts(after) - refused_attempts(before)
    events = queued_between(before, after).most_common(3) if tried else ()
    told = f" (queued by {', '.join(f'{event} {count:,}' for event, count in events)})" if events else ""
    return Figure(f"{what}{told}", tried, "", at_most(0))


async def _at_rest(read: Metrics) -> str:
    """Returns the scheduler's metrics once it is about to try no pod, or after ``REST_SECONDS``."""
    await asyncio.sleep(SETTLED_SECONDS)
    deadline = time.monotonic() + REST_SECONDS
    while waiting_to_be_tried(metrics := await read()):
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(POLL_SECONDS)
    return metrics


async def _while_cards_become_free(running: RunningEngine, access: Access, count: int) -> list[Figure]:
    """As many pods as cards become free are bound, and no other one is tried. What comes first is no matter:
    that a pod is gone, or that its kubelet has its units back."""
    first, client = running.layout.nodes, running.client
    async with access.client() as scheduler, AsyncExitStack() as stack:
        indices = range(first, first + 2 * FREED)
        held = [await _held_node(stack, client, scheduler, index) for index in indices]
        async with refused(client, count, _fit_no_card(running.scheduler_name)):
            return [
                *await _freed(running, held[:FREED], (_gone, _released), f"of {count:,} once pods are gone"),
                *await _freed(
                    running, held[FREED:], (_released, _gone), f"of {count:,} before pods are gone"
                ),
            ]


async def _freed(
    running: RunningEngine, nodes: Sequence[AddedNode], steps: Sequence[Step], what: str
) -> list[Figure]:
    """Frees one card of each node by ``steps``."""
    before, present = await _at_rest(running.scheduler_metrics), await _bound_pods(running.client)
    for step in steps:
        for node in nodes:
            await step(node)
        await asyncio.sleep(STEP_SECONDS)
    placed = await _bound_in_time(running.client, present + len(nodes)) - present
    after = await _at_rest(running.scheduler_metrics)
    return [
        Figure(f"bound, {len(nodes)} cards reported free: {what}", placed, "pods", at_least(len(nodes))),
        in_vain(f"attempts in vain, {len(nodes)} cards reported free: {what}", before, after),
    ]


async def _gone(node: AddedNode) -> None:
    await remove_pod(node.client, _on_first_card(node.index))


async def _released(node: AddedNode) -> None:
    await node.release({_on_first_card(node.index)})


def _on_first_card(index: int) -> str:
    """Returns the name of the only pod of a node that is one."""
    return PlacedPod(index, 0, UNITS, 0).name


async def _held_node(
    stack: AsyncExitStack, client: KubeClient, scheduler: KubeClient, index: int
) -> AddedNode:
    """A node whose cards are all in part taken: one by a pod, the others by holders that nobody knows."""
    layout = Cards()
    places = tuple(PlacedPod(index, card, UNITS, card) for card in range(layout.cards))
    node = await stack.enter_async_context(added(client, index, Cards(placed=places)))
    body = pending_pod(places[0].name, units=UNITS, scheduler=NOBODY)
    uids = await stack.enter_async_context(bound(client, scheduler, {places[0]: body}))
    await node.report({**{pod.name: f"gone-{pod.name}" for pod in places}, **uids})
    return node


async def _bound_in_time(client: KubeClient, wanted: int) -> int:
    """Returns how many of the waiting pods are bound, once it is as many, or after ``FREED_SECONDS``."""
    deadline = time.monotonic() + FREED_SECONDS
    while (found := await _bound_pods(client)) < wanted:
        if time.monotonic() > deadline:
            break
        await asyncio.sleep(POLL_SECONDS)
    return found


async def _bound_pods(client: KubeClient) -> int:
    pages = client.pages(paths.pods(NAMESPACE), limit=1000, label_selector=f"{LABEL}=yes")
    found = Counter([bool(pod["spec"].get("nodeName")) async for page in pages for pod in page.items])
    return found[True]
