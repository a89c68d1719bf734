"""Row ``storm``: many binds at once."""

from collections.abc import AsyncIterator

from bench.cluster.bench_cluster import UNITS
from bench.cluster.cluster_objects import NAMESPACE
from bench.cluster.ground import Ground
from bench.measuring.figures import Figure, at_least, at_most
from bench.readings.card_sums import overcommitted
from bench.schedule_throughput import Throughput, measure

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json

STORM_SECONDS = 180.0
PAGE = 1000


async def storm(cluster: Ground) -> list[Figure]:
    """Pods created all at once: every one is bound, on cards that have room, and no bind fails."""
    await cluster.only_objects()
    client, pods = cluster.client, cluster.size.storm
    over: list[int] = []

    async def look(_: str) -> None:
        found = [pod async for pod in every_pod(client)]
        over.append(len(overcommitted(found, cluster.layout.card_units)))

    before = await cluster.failed_binds()
    throughput = await measure(
        client, pods=pods, units=UNITS, scheduler=cluster.scheduler_name, deadline=STORM_SECONDS, look=look
    )
    failed = await cluster.failed_binds() - before
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


async def every_pod(client: KubeClient) -> AsyncIterator[Json]:
    """Yields the pods of the benchmark's namespace."""
    async for page in client.pages(paths.pods(NAMESPACE), limit=PAGE):
        for pod in page.items:
            yield pod
