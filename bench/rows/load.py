"""Rows ``storm`` and ``pending``: many binds at once, and many pods that cannot be bound."""

import asyncio
import statistics
from collections import Counter
from collections.abc import AsyncIterator, Iterable

from bench.bench_cluster import UNITS, BenchCluster, bound, median, rate
from bench.cluster_objects import NAMESPACE, pending_pod
from bench.concurrency import for_each
from bench.figures import Figure, at_least, at_most, ratio
from bench.prometheus_text import by_label, total
from bench.schedule_throughput import Throughput, measure

from gpushare_core.books.allocation import decode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.json_object import Json
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient, Request
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.follow import Collection, Listed, follow

STORM_SECONDS = 180.0
TRIED_SECONDS = 600.0
"""Until every pod that does not fit was refused once."""
BINDS = "gpushare_extender_binds_total"
GOOD = "Bound"
REST_SECONDS = 120
QUIET_SECONDS = 10.0
QUEUES = "scheduler_pending_pods"
ATTEMPTS = "scheduler_schedule_attempts_total"
UNFIT_UNITS = 17
"""More than a card has, and less than nodes have in sum: the extender is asked about each of them."""
UNFIT_LABEL = "bench-unfit"
PAGE = 1000


async def storm(cluster: BenchCluster) -> list[Figure]:
    """Pods created all at once: every one is bound, on cards that have room, and no bind fails."""
    await cluster.only_objects()
    client, pods = cluster.client, cluster.size.storm
    over: list[int] = []

    async def look(_: str) -> None:
        found = [pod async for pod in _pods(client)]
        over.append(len(overcommitted(found, cluster.layout.card_units)))

    before = await cluster.extender_metrics()
    throughput = await measure(client, pods=pods, units=UNITS, deadline=STORM_SECONDS, look=look)
    failed = failed_binds(before, await cluster.extender_metrics())
    return storm_figures(throughput, overcommitted_cards=over[0], failed=failed)


def storm_figures(throughput: Throughput, *, overcommitted_cards: int, failed: float) -> list[Figure]:
    created = throughput.created
    return [
        Figure(f"bound of {created} pods created at once", throughput.bound, "pods", at_least(created)),
        Figure("cards given out beyond their size", overcommitted_cards, "cards", at_most(0)),
        Figure("binds that failed", failed, "binds", at_most(0)),
        Figure("bound pods", throughput.rate, "pods/s"),
        Figure("create to bound: p99", 1e3 * throughput.wait.p99, "ms"),
    ]


def failed_binds(before: str, after: str) -> float:
    """Returns how many binds ended otherwise than bound between two readings of the extender's metrics."""
    earlier, later = by_label(before, BINDS, "result"), by_label(after, BINDS, "result")
    return sum(count - earlier.get(result, 0) for result, count in later.items() if result != GOOD)


def overcommitted(pods: Iterable[Json], card_units: int) -> list[str]:
    """Returns the cards (UUID) of which the annotations of ``pods`` give out more than ``card_units``."""
    used = Counter[str]()
    for pod in pods:
        metadata = pod["metadata"]
        if text := (metadata.get("annotations") or {}).get(GPUSHARE.allocation_annotation):
            used.update(decode_allocation(text, uid=metadata["uid"]).held())
    return sorted(card for card, units in used.items() if units > card_units)


async def pending(cluster: BenchCluster) -> list[Figure]:
    """Shared pods while others wait that fit no card, each of them refused already and, where it comes to
    that, no longer tried."""
    alone = await _alone(cluster)
    count = cluster.size.unfit
    try:
        await for_each(range(count), lambda index: _create_unfit(cluster.client, index))
        await asyncio.wait_for(_until_refused(cluster.client, count), TRIED_SECONDS)
        again = await (_tried_again if cluster.setting.is_stock else _written_again)(cluster)
        beside = await _median_rate(cluster)
    finally:
        await for_each(range(count), lambda index: _remove_unfit(cluster.client, index))
    return [
        again,
        Figure("shared pods alone", alone, "pods/s"),
        Figure(f"shared pods beside {count:,} that do not fit", beside, "pods/s"),
        Figure("beside over alone", ratio(beside, alone, "beside over alone"), target=at_least(0.9)),
    ]


async def _alone(cluster: BenchCluster) -> float:
    """Returns the rate of shared pods without others. The extender has the first run to warm up."""
    if cluster.setting.is_stock:
        return median((await cluster.comparison()).shared, rate)
    await cluster.only_objects()
    await measure(cluster.client, pods=cluster.size.pods, units=UNITS)
    return await _median_rate(cluster)


async def _median_rate(cluster: BenchCluster) -> float:
    """Raises ``NotMeasuredError`` where not all pods were bound."""
    pods, repeats = cluster.size.pods, cluster.size.repeats
    runs = [bound(await measure(cluster.client, pods=pods, units=UNITS)) for _ in range(repeats)]
    return statistics.median(each.rate for each in runs)


async def _tried_again(cluster: BenchCluster) -> Figure:
    """Waits until kube-scheduler tries no pod any more, or for ``REST_SECONDS``: that may never be."""
    for _ in range(REST_SECONDS):
        if not waiting_to_be_tried(await cluster.scheduler_metrics()):
            break
        await asyncio.sleep(1.0)
    again = await _attempts_a_second(cluster)
    name = f"attempts of {cluster.size.unfit:,} refused pods while nothing changes"
    return Figure(name, again, "/s", at_most(0))


async def _written_again(cluster: BenchCluster) -> Figure:
    """The same by what is written into the pods, where nobody may read the scheduler's metrics from here."""
    again, before = 0.0, await _versions(cluster.client)
    for _ in range(int(REST_SECONDS / QUIET_SECONDS)):
        await asyncio.sleep(QUIET_SECONDS)
        after = await _versions(cluster.client)
        again, before = len(after - before) / QUIET_SECONDS, after
        if not again:
            break
    name = f"writes into {cluster.size.unfit:,} refused pods while nothing changes"
    return Figure(name, again, "/s", at_most(0))


async def _versions(client: KubeClient) -> set[str]:
    """Returns the resource versions of the pods that do not fit: another one for each write."""
    pages = client.pages(paths.pods(NAMESPACE), limit=PAGE, label_selector=f"{UNFIT_LABEL}=yes")
    return {pod["metadata"]["resourceVersion"] async for page in pages for pod in page.items}


def waiting_to_be_tried(metrics: str) -> float:
    """Returns how many pods kube-scheduler is about to try, by what it tells Prometheus."""
    queues = by_label(metrics, QUEUES, "queue")
    return queues.get("active", 0) + queues.get("backoff", 0)


async def _attempts_a_second(cluster: BenchCluster) -> float:
    before = attempts(await cluster.scheduler_metrics())
    await asyncio.sleep(QUIET_SECONDS)
    return (attempts(await cluster.scheduler_metrics()) - before) / QUIET_SECONDS


def attempts(metrics: str) -> float:
    """Returns how many attempts to schedule a pod have ended, by what it tells Prometheus."""
    return total(metrics, ATTEMPTS)


def _unfit_name(index: int) -> str:
    return f"unfit-{index:05d}"


async def _create_unfit(client: KubeClient, index: int) -> None:
    body = pending_pod(_unfit_name(index), units=UNFIT_UNITS, labels={UNFIT_LABEL: "yes"})
    await client.create(paths.pods(NAMESPACE), body)


async def _remove_unfit(client: KubeClient, index: int) -> None:
    path = paths.pod_path(NAMESPACE, _unfit_name(index))
    try:
        await client.send(Request(method="DELETE", path=path, body={"gracePeriodSeconds": 0}))
    except ApiError as error:
        if not error.is_not_found:
            raise


async def _until_refused(client: KubeClient, count: int) -> None:
    """Returns once kube-scheduler has said of ``count`` pods that no node takes them."""
    refused = set[str]()
    collection = Collection(paths.pods(NAMESPACE), label_selector=f"{UNFIT_LABEL}=yes")
    async for event in follow(client, collection):
        pods = event.items if isinstance(event, Listed) else [event.item]
        refused.update(pod["metadata"]["name"] for pod in pods if is_refused(pod))
        if len(refused) >= count:
            return


def is_refused(pod: Json) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)


async def _pods(client: KubeClient) -> AsyncIterator[Json]:
    async for page in client.pages(paths.pods(NAMESPACE), limit=PAGE):
        for pod in page.items:
            yield pod
