"""Row ``pending``: shared pods beside many that cannot be bound."""

import asyncio
import statistics

from bench.cluster.bench_cluster import UNITS, BenchCluster, bound, median, rate
from bench.cluster.cluster_objects import NAMESPACE
from bench.cluster.waiting_pods import refused, too_large_for_cards, versions
from bench.measuring.figures import Figure, at_least, at_most, ratio
from bench.readings.scheduler_metrics import attempts, waiting_to_be_tried
from bench.schedule_throughput import measure

from gpushare_core.kube import paths
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

BOUND_SECONDS = 120.0
REST_SECONDS = 120
QUIET_SECONDS = 10.0
ROUND_SECONDS = 300.0
LOOK_SECONDS = 2.0
AT_REST = 0.05
"""Of a processor: less of it the extender takes while it is not asked."""
EVENT_NAME = "bench-event"
EVENT_OBJECT: Json = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "CSIStorageCapacity",
    "metadata": {"name": EVENT_NAME},
    "storageClassName": EVENT_NAME,
}
"""Something that kube-scheduler watches and that means nothing."""


async def pending(cluster: BenchCluster) -> list[Figure]:
    """Shared pods while others wait that fit no card: those have all just been refused and, where it comes to
    that, are no longer tried; then once they were refused often, as in a cluster in which things happen."""
    alone = await _alone(cluster)
    count = cluster.size.unfit
    async with refused(cluster.client, count, too_large_for_cards(cluster.scheduler_name)):
        again = await (_tried_again if cluster.setting.is_stock else _written_again)(cluster)
        first = await _rate_in_time(cluster)
        beside = await _refused_often(cluster) if cluster.size.unfit_rounds else None
    others = f"beside {count:,} that do not fit"
    return [
        again,
        Figure("shared pods alone", alone, "pods/s"),
        *_over(alone, first, f"first ones {others}", "first over alone"),
        *_over(alone, beside, f"shared pods {others}, refused often", "beside over alone"),
    ]


def _over(alone: float, beside: float | None, what: str, over: str) -> list[Figure]:
    """``beside``: None where that was not measured."""
    if beside is None:
        return []
    return [
        Figure(what, beside, "pods/s"),
        Figure(over, ratio(beside, alone, over), target=at_least(0.9)),
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
    return statistics.median(run.rate for run in runs)


async def _rate_in_time(cluster: BenchCluster) -> float:
    """Returns how many shared pods were bound in a second: where not all were, in all the time there was."""
    try:
        run = await measure(cluster.client, pods=cluster.size.pods, units=UNITS, deadline=BOUND_SECONDS)
    except TimeoutError:
        return 0.0
    return run.within(BOUND_SECONDS)


async def _refused_often(cluster: BenchCluster) -> float:
    """Returns the rate once the others were refused often."""
    await _refuse_often(cluster)
    return statistics.median([await _rate_in_time(cluster) for _ in range(cluster.size.repeats)])


async def _refuse_often(cluster: BenchCluster) -> None:
    """Has something happen, for which kube-scheduler tries every refused pod once more, again and again."""
    path = paths.storage_capacities(NAMESPACE)
    await cluster.client.create(path, EVENT_OBJECT)
    try:
        for number in range(cluster.size.unfit_rounds):
            if not await _rests(cluster):
                return  # they are tried all the time
            changed = {"metadata": {"annotations": {"bench-event": str(number)}}}
            await cluster.client.merge(f"{path}/{EVENT_NAME}", changed)
        await _rests(cluster)
    finally:
        await cluster.client.send(ApiRequest(method="DELETE", path=f"{path}/{EVENT_NAME}"))


async def _rests(cluster: BenchCluster) -> bool:
    """Returns whether the extender was no longer asked about pods within ``ROUND_SECONDS``."""
    used = (await cluster.footprint("extender")).cpu
    for _ in range(int(ROUND_SECONDS / LOOK_SECONDS)):
        await asyncio.sleep(LOOK_SECONDS)
        before, used = used, (await cluster.footprint("extender")).cpu
        if used - before < AT_REST * LOOK_SECONDS:
            return True
    return False


async def _tried_again(cluster: BenchCluster) -> Figure:
    """Waits until kube-scheduler tries no pod any more, or for ``REST_SECONDS``: that may never be."""
    for _ in range(REST_SECONDS):
        if not waiting_to_be_tried(await cluster.scheduler_metrics()):
            break
        await asyncio.sleep(1.0)
    again = await _attempts_a_second(cluster, min(QUIET_SECONDS, cluster.size.quiet_seconds))
    name = f"attempts of {cluster.size.unfit:,} refused pods while nothing changes"
    return Figure(name, again, "/s", at_most(0))


async def _written_again(cluster: BenchCluster) -> Figure:
    """The same by what is written into the pods, where nobody may read the scheduler's metrics from here."""
    again, before = 0.0, await versions(cluster.client)
    for _ in range(int(REST_SECONDS / QUIET_SECONDS)):
        await asyncio.sleep(QUIET_SECONDS)
        after = await versions(cluster.client)
        again, before = len(after - before) / QUIET_SECONDS, after
        if not again:
            break
    name = f"writes into {cluster.size.unfit:,} refused pods while nothing changes"
    return Figure(name, again, "/s", at_most(0))


async def _attempts_a_second(cluster: BenchCluster, seconds: float) -> float:
    before = attempts(await cluster.scheduler_metrics())
    await asyncio.sleep(seconds)
    return (attempts(await cluster.scheduler_metrics()) - before) / seconds
