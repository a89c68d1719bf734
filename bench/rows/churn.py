"""Row ``churn``: pods come and go for an hour, and neither memory, nor latency, nor the books drift."""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.cluster.bench_cluster import UNITS
from bench.cluster.cluster_objects import NAMESPACE, pending_pod
from bench.cluster.ground import Ground
from bench.measuring.figures import Figure, NotMeasuredError, at_most, ratio
from bench.measuring.percentiles import Percentiles
from bench.readings.card_sums import CardSums, shares_of
from bench.rows.storm import every_pod

from gpushare_core.audit.auditor import differences, seen_twice
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.readers import read_pod, read_share_node
from gpushare_core.audit.records import ClusterRecords, NodeRecords, PodRecord
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.follow import Changed, Collection, Listed, follow
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

RATE = 20
"""Pods a second."""
LIFE = 5.0
"""Seconds from bound to deleted."""
WINDOW = 0.1
"""Of the whole: what its beginning and its end are."""
QUIET_SECONDS = 10.0
"""After the last pod is gone: the extender counts units for some seconds more."""
DRAIN_SECONDS = 120.0
POLL_SECONDS = 0.5
LABEL = "bench-churn"
PAGE = 1000


@dataclass(slots=True)
class Churn:
    """When each pod was created and seen bound, in seconds of one clock."""

    client: KubeClient
    scheduler: str
    cards: CardSums
    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)

    async def create(self, seconds: float) -> None:
        begun = time.monotonic()
        async with asyncio.TaskGroup() as group:
            number = 0
            while (now := time.monotonic()) < begun + seconds:
                group.create_task(self._create(f"churn-{number:06d}"))
                number += 1
                await asyncio.sleep(max(0.0, begun + number / RATE - now))

    async def _create(self, name: str) -> None:
        self.created[name] = time.monotonic()
        body = pending_pod(name, units=UNITS, labels={LABEL: "yes"}, scheduler=self.scheduler)
        await self.client.create(paths.pods(NAMESPACE), body)

    async def follow(self) -> None:
        """Has each pod deleted some time after it is bound; never returns."""
        collection = Collection(paths.pods(NAMESPACE), label_selector=f"{LABEL}=yes")
        async with asyncio.TaskGroup() as group:
            async for event in follow(self.client, collection):
                if isinstance(event, Changed) and event.kind == "DELETED":
                    self.cards.forget(event.item)
                    continue
                for pod in event.items if isinstance(event, Listed) else [event.item]:
                    self.cards.see(pod)
                    name = pod["metadata"]["name"]
                    if pod["spec"].get("nodeName") and name not in self.bound:
                        self.bound[name] = time.monotonic()
                        group.create_task(self._delete(name))

    async def _delete(self, name: str) -> None:
        await asyncio.sleep(LIFE)
        path = paths.pod_path(NAMESPACE, name)
        try:
            await self.client.send(ApiRequest(method="DELETE", path=path, body={"gracePeriodSeconds": 0}))
        except ApiError as error:
            if not error.is_not_found:
                raise
        self.gone.add(name)

    async def drained(self) -> None:
        """Returns when all pods are gone, or when those that are left have had their time."""
        deadline = time.monotonic() + DRAIN_SECONDS
        while len(self.gone) < len(self.created) and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(POLL_SECONDS)

    def waits(self, begin: float, end: float) -> Percentiles:
        """Returns the milliseconds from create to bound of the pods that were created in between.

        Raises:
            NotMeasuredError: none was, or one of them was never bound.
        """
        names = [name for name, at in self.created.items() if begin <= at < end]
        unbound = [name for name in names if name not in self.bound]
        if not names or unbound:
            raise NotMeasuredError(f"{len(unbound)} of {len(names)} pods were never bound")
        return Percentiles.of([1e3 * (self.bound[name] - self.created[name]) for name in names])


async def churn(cluster: Ground) -> list[Figure]:
    """Compares the first with the last tenth, and the books after with the books before."""
    await cluster.only_objects()
    seconds = cluster.size.churn_seconds
    before = await _differences(cluster)
    run = Churn(cluster.client, cluster.scheduler_name, await _card_sums(cluster))
    begun = time.monotonic()
    following = asyncio.create_task(run.follow())
    try:
        resident = await _while_creating(cluster, run, seconds)
        await run.drained()
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
    await asyncio.sleep(QUIET_SECONDS)
    new = without(await _differences(cluster), before)
    first = run.waits(begun, begun + WINDOW * seconds)
    last = run.waits(begun + (1 - WINDOW) * seconds, begun + seconds)
    latency = (first, last)
    return churn_figures(resident, latency, new, over=sorted(run.cards.over), pods=len(run.created))


async def _card_sums(cluster: Ground) -> CardSums:
    """With the pods that stay."""
    used = Counter[str]()
    async for pod in every_pod(cluster.client):
        used.update(shares_of(pod))
    return CardSums(cluster.layout.card_units, used)


@dataclass(frozen=True, slots=True)
class Resident:
    """MiB of the program that knows the cards."""

    program: str
    begin: float
    """After the first tenth."""
    end: float


async def _while_creating(cluster: Ground, run: Churn, seconds: float) -> Resident:
    creating = asyncio.create_task(run.create(seconds))
    try:
        await asyncio.wait({creating}, timeout=WINDOW * seconds)
        first = (await cluster.use()).resident
        await creating
    finally:
        creating.cancel()
    return Resident(cluster.program, first, (await cluster.use()).resident)


def churn_figures(
    resident: Resident,
    latency: tuple[Percentiles, Percentiles],
    new: Sequence[Difference],
    *,
    over: Sequence[str],
    pods: int,
) -> list[Figure]:
    """``latency``: at begin and end; ``over``: cards. In memory equal runs differ by a twentieth, in latency
    by a quarter."""
    program, (first, last) = resident.program, latency
    told = f" ({new[0]})" if new else ""
    return [
        Figure("pods created and deleted", pods),
        Figure(f"{program} at the begin", resident.begin, "MiB"),
        Figure(f"{program} at the end", resident.end, "MiB"),
        Figure("memory, end over begin", ratio(resident.end, resident.begin, "memory"), target=at_most(1.05)),
        Figure("create to bound at the begin: p50", first.p50, "ms"),
        Figure("create to bound at the begin: p99", first.p99, "ms"),
        Figure("p50, end over begin", ratio(last.p50, first.p50, "p50"), target=at_most(1.25)),
        Figure("p99, end over begin", ratio(last.p99, first.p99, "p99"), target=at_most(1.25)),
        Figure(f"differences between books that were not there before{told}", len(new), "", at_most(0)),
        Figure("cards given out beyond their size at any moment", len(over), "cards", at_most(0)),
    ]


def without(found: Sequence[Difference], before: Sequence[Difference]) -> list[Difference]:
    known = {pod.identity for pod in before}
    return [pod for pod in found if pod.identity not in known]


async def _differences(cluster: Ground) -> Sequence[Difference]:
    """Those that are seen twice: books are never read in one instant."""
    first = differences(await _books(cluster))
    await asyncio.sleep(POLL_SECONDS)
    return list(seen_twice(first, differences(await _books(cluster))))


async def _books(cluster: Ground) -> ClusterRecords:
    """GPUShareNodes, pods and the ledger: no kubelet is there."""
    share_nodes = await _all(cluster.client, paths.SHARE_NODES)
    pods = await _all(cluster.client, paths.PODS)
    ledger = await cluster.ledger()
    by_node: dict[str, dict[str, PodRecord]] = defaultdict(dict)
    for pod in map(read_pod, pods):
        by_node[pod.node][pod.key.uid] = pod
    found = {}
    for item in share_nodes:
        name = item["metadata"]["name"]
        found[name] = NodeRecords(
            node=name, share_node=read_share_node(item), pods=by_node[name], ledger=ledger.get(name)
        )
    return ClusterRecords(found)


async def _all(client: KubeClient, path: str) -> list[Json]:
    return [item async for page in client.pages(path, limit=PAGE) for item in page.items]
