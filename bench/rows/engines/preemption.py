"""Row ``engine-preemption``: one card has to be freed, beside plain pods of which one has to go."""

import asyncio
import statistics
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from bench.cluster.cluster_objects import NAMESPACE, PlacedPod, node_name, pending_pod
from bench.cluster.waiting_pods import remove_pod, with_cpus
from bench.engines.engine import Engine, judged
from bench.engines.engine_cluster import EngineCluster
from bench.engines.nodes import NOBODY, AddedNode, Cards, added, bound
from bench.measuring.figures import Figure, NotMeasuredError, at_least, at_most, ratio

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.follow import Changed, Collection, Listed, follow
from gpushare_core.text.json_object import Json

PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LOW, MIDDLE, PREEMPTOR, HIGH = "", "bench-middle", "bench-preemptor", "bench-high"
PRIORITIES = {MIDDLE: 100, PREEMPTOR: 1000, HIGH: 100_000}
"""Pods of no class have 0."""
LABEL = "bench-preemption"
CPUS_A_CARD = 24
"""A node of the benchmark has as many cores for each of its cards."""
SECONDS = 60.0
SETTLED_SECONDS = 1.0
"""Until a scheduler has heard of a node that is new and full: in life it has been there for long."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A pod that runs when the preemptor comes. ``units``: of its card; 0: it is a plain pod."""

    card: int
    units: int
    priority: str


@dataclass(frozen=True, slots=True)
class Kind:
    """What is preempted. ``victim``: the place of the only tenant who is to go."""

    tenants: tuple[Tenant, ...]
    victim: int


SHARED = Kind(
    (
        Tenant(0, 16, MIDDLE),
        Tenant(1, 8, LOW),
        Tenant(1, 8, LOW),
        Tenant(2, 16, LOW),
        Tenant(3, 12, LOW),
        Tenant(3, 4, MIDDLE),
        *(Tenant(card, 16, HIGH) for card in range(4, 8)),
    ),
    victim=3,
)
"""Others would free a card as well: more of them, or more important ones."""
PLAIN = Kind((Tenant(0, 0, MIDDLE), Tenant(1, 0, LOW), *(Tenant(card, 0, HIGH) for card in range(2, 8))), 1)


@dataclass(frozen=True, slots=True)
class Preempted:
    """Seconds are from the creation of the preemptor on. ``victims``: the places of those who went."""

    seconds: float
    """Until it was bound."""
    victims: frozenset[int]
    gone: float = 0.0
    """Until the last victim was seen to be gone."""
    released: float = 0.0
    """Until the row, in the plugin's place, had reported that the kubelet has its units back; 0: no units."""

    @property
    def report(self) -> float:
        """Seconds that the report took. No scheduler can bind the preemptor before."""
        return self.released - self.gone if self.released else 0.0

    @property
    def scheduler(self) -> float:
        """Seconds that are the scheduler's: to choose and evict, and to bind once the card is free."""
        return self.seconds - self.report


async def preemption(cluster: EngineCluster, *, engine: Engine) -> list[Figure]:
    """Each preemption has a full node of its own, and its pods may go nowhere else."""
    found: Mapping[Kind, list[Preempted]] = {PLAIN: [], SHARED: []}
    schedulers = {PLAIN: "default-scheduler", SHARED: engine.scheduler}
    index = cluster.layout.nodes
    async with cluster.running(engine) as running, (await cluster.access(engine)).client() as account:
        await running.warm_up()
        await _add_priority_classes(cluster.client)
        for number in range(cluster.size.preemptions):
            for kind in (PLAIN, SHARED) if number % 2 == 0 else (SHARED, PLAIN):
                preemptor = preemptor_of(kind, index, scheduler=schedulers[kind])
                found[kind].append(await _preempted(cluster.client, account, kind, preemptor, index=index))
                index += 1
    return judged(engine, preemption_figures(found[PLAIN], found[SHARED]))


def preemption_figures(plain: Sequence[Preempted], shared: Sequence[Preempted]) -> list[Figure]:
    rounds, right = len(shared), sum(found.victims == {SHARED.victim} for found in shared)
    ours, theirs = _median(run.scheduler for run in shared), _median(run.scheduler for run in plain)
    whole, over = _median(run.seconds for run in shared), "shared over plain"
    until_gone = [_median(run.gone for run in runs) for runs in (shared, plain)]
    return [
        Figure(f"victims of {rounds} preemptions of a card", sum(len(run.victims) for run in shared), "pods",
               at_most(rounds)),
        Figure(f"of {rounds} preemptions with the fewest and least important victims", right, "",
               at_least(rounds)),
        Figure("create of the preemptor to the end of the victim, a card", until_gone[0], "ms"),
        Figure("the row's own report that the card is free", _median(run.report for run in shared), "ms"),
        Figure("the report to bound", _median(run.seconds - run.released for run in shared), "ms"),
        Figure("create to bound of the preemptor, a card, but for the report", ours, "ms"),
        Figure("create of the preemptor to the end of the victim, CPU", until_gone[1], "ms"),
        Figure("create to bound of the preemptor, CPU", theirs, "ms"),
        Figure(f"{over}, but for the report", ratio(ours, theirs, over), target=at_most(1.2)),
        Figure(f"{over}, with the report", ratio(whole, theirs, over)),
    ]  # fmt: skip


def _median(seconds: Iterable[float]) -> float:
    """Returns the median in milliseconds."""
    return 1e3 * statistics.median(seconds)


async def _preempted(
    client: KubeClient, account: KubeClient, kind: Kind, preemptor: Json, *, index: int
) -> Preempted:
    places = places_of(kind, index)
    shared = tuple(place for place in places if place.units)
    bodies = {place: tenant_body(place, kind.tenants[place.place]) for place in places}
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(added(client, index, Cards(placed=shared)))
        uids = await stack.enter_async_context(bound(client, account, bodies))
        stack.push_async_callback(remove_pod, client, preemptor["metadata"]["name"])
        await node.report(uids)
        await asyncio.sleep(SETTLED_SECONDS)
        try:
            return await asyncio.wait_for(_until_bound(node, places, preemptor), SECONDS)
        except TimeoutError:
            raise TimeoutError(f"the preemptor is not bound after {SECONDS:g} s") from None


async def _until_bound(node: AddedNode, places: Sequence[PlacedPod], preemptor: Json) -> Preempted:
    """Creates the preemptor once all is watched. What pods had that go is reported to be free at once: how
    long a plugin takes for that is not the scheduler's, and not measured here."""
    by_name = {place.name: place for place in places}
    name, victims = preemptor["metadata"]["name"], set[int]()
    begun = gone = released = 0.0
    async for event in follow(node.client, _pods_of(node.index)):
        if isinstance(event, Listed):
            if not begun:
                begun = time.monotonic()
                await node.client.create(paths.pods(NAMESPACE), preemptor)
            continue
        changed = event.item["metadata"]["name"]
        if is_gone(event) and changed in by_name:
            gone = time.monotonic() - begun
            victims.add(by_name[changed].place)
            if by_name[changed].units:
                await node.release([place.name for place in places if place.place in victims])
                released = time.monotonic() - begun
        elif changed == name and event.item["spec"].get("nodeName"):
            return Preempted(time.monotonic() - begun, frozenset(victims), gone, released)
    raise NotMeasuredError("nobody tells of the preemptor any more")


def is_gone(event: Changed[Json]) -> bool:
    return event.kind == "DELETED"


def _pods_of(index: int) -> Collection:
    return Collection(paths.pods(NAMESPACE), label_selector=f"{LABEL}={node_name(index)}")


def places_of(kind: Kind, index: int) -> tuple[PlacedPod, ...]:
    return tuple(PlacedPod(index, pod.card, pod.units, place) for place, pod in enumerate(kind.tenants))


def tenant_body(place: PlacedPod, tenant: Tenant) -> Json:
    body = pending_pod(place.name, units=place.units, labels=_labels(place.node), scheduler=NOBODY)
    return with_priority(body if place.units else with_cpus(body, CPUS_A_CARD), tenant.priority)


def preemptor_of(kind: Kind, index: int, *, scheduler: str) -> Json:
    """Returns a pod for that node alone, which asks for a whole card, or for as much CPU."""
    units = Cards().card_units if kind is SHARED else 0
    body = pending_pod(f"preemptor-{index}", units=units, labels=_labels(index), scheduler=scheduler)
    asking = with_priority(body if units else with_cpus(body, CPUS_A_CARD), PREEMPTOR)
    return {**asking, "spec": {**asking["spec"], **only_on(index)}}


def only_on(index: int) -> Json:
    return {"nodeSelector": {"kubernetes.io/hostname": node_name(index)}}


def _labels(index: int) -> dict[str, str]:
    return {LABEL: node_name(index)}


def with_priority(pod: Json, name: str) -> Json:
    """Returns ``pod`` with the PriorityClass of that name; empty: with none."""
    return {**pod, "spec": {**pod["spec"], "priorityClassName": name}} if name else pod


async def _add_priority_classes(client: KubeClient) -> None:
    for name, value in PRIORITIES.items():
        try:
            await client.create(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})
        except ApiError as error:
            if not error.is_conflict:
                raise
