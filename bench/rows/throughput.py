"""Rows ``shared``, ``ordinary``, ``algorithm`` and ``cpu``: what kube-scheduler and all others pay for us."""

import statistics

from bench.cluster.bench_cluster import BenchCluster, Run, bound, median, rate
from bench.measuring.figures import Figure, Target, at_least, at_most, ratio
from bench.rows.pods import settled
from bench.schedule_throughput import Throughput, measure

SHARED = at_least(0.8)
ORDINARY = {"Dedicated": at_least(0.98), "KubeScheduler": at_least(0.9)}
"""By backend."""


async def shared(cluster: BenchCluster) -> list[Figure]:
    """Shared pods beside plain ones: medians of runs that take turns."""
    compared = await cluster.comparison()
    plain, ours = median(compared.plain, rate), median(compared.shared, rate)
    return [
        Figure("plain pods", plain, "pods/s"),
        Figure("shared pods", ours, "pods/s"),
        Figure("create to bound of a shared pod: p50", _wait(compared.shared, 0.5), "ms"),
        Figure("create to bound of a shared pod: p99", _wait(compared.shared, 0.99), "ms"),
        Figure("shared over plain", ratio(ours, plain, "shared over plain"), target=SHARED),
    ]


def _wait(runs: tuple[Run, ...], share: float) -> float:
    waits = [run.throughput.wait for run in runs]
    return 1e3 * statistics.median(wait.p50 if share == 0.5 else wait.p99 for wait in waits)


async def ordinary(cluster: BenchCluster) -> list[Figure]:
    """Pods that ask for nothing of ours, without us and then with us. The first row: it begins without us."""
    size, backend = cluster.size, cluster.setting.backend
    await cluster.stock(size.pods)  # the scheduler warms up
    without = [await cluster.stock(size.pods) for _ in range(size.repeats)]
    await cluster.close_worker()
    await settled(cluster)  # the operator takes back GPUShareNodes that no policy asked for
    await _plain(cluster)
    installed = [await _plain(cluster) for _ in range(size.repeats)]
    return ordinary_figures(without, installed, ORDINARY[backend])


async def _plain(cluster: BenchCluster) -> Throughput:
    return bound(await measure(cluster.client, pods=cluster.size.pods, units=0))


def ordinary_figures(without: list[Throughput], installed: list[Throughput], target: Target) -> list[Figure]:
    before = statistics.median(run.rate for run in without)
    after = statistics.median(run.rate for run in installed)
    return [
        Figure("ordinary pods without us", before, "pods/s"),
        Figure("ordinary pods with us installed", after, "pods/s"),
        Figure("with us over without us", ratio(after, before, "with over without us"), target=target),
    ]


async def algorithm(cluster: BenchCluster) -> list[Figure]:
    """What kube-scheduler says it takes to find a node."""
    compared = await cluster.comparison()
    plain = median(compared.plain, lambda run: run.algorithm)
    ours = median(compared.shared, lambda run: run.algorithm)
    return [
        Figure("scheduling algorithm, plain pod", plain, "ms"),
        Figure("scheduling algorithm, shared pod", ours, "ms"),
        Figure("shared over plain", ratio(ours, plain, "shared over plain"), target=at_most(1.3)),
    ]


async def extender_cpu(cluster: BenchCluster) -> list[Figure]:
    """All verbs, binds and watches, from the creation of pods to their deletion."""
    compared = await cluster.comparison()
    use = await cluster.footprint("extender")
    return [
        Figure("extender per shared pod", median(compared.shared, _cpu), "ms of CPU", at_most(1.5)),
        Figure("extender per plain pod", median(compared.plain, _cpu), "ms of CPU"),
        Figure("extender resident", use.resident, "MiB"),
    ]


def _cpu(run: Run) -> float:
    return run.extender
