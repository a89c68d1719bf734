"""Row ``storm``: many binds at once."""

from collections import Counter
from collections.abc import AsyncIterator, Iterable

from bench.bench_cluster import UNITS, BenchCluster
from bench.cluster_objects import NAMESPACE
from bench.figures import Figure, at_least, at_most
from bench.prometheus_text import by_label
from bench.schedule_throughput import Throughput, measure

from gpushare_core.allocation_annotation import decode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json

STORM_SECONDS = 180.0
BINDS = "gpushare_extender_binds_total"
GOOD = "Bound"
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


async def _pods(client: KubeClient) -> AsyncIterator[Json]:
    async for page in client.pages(paths.pods(NAMESPACE), limit=PAGE):
        for pod in page.items:
            yield pod
