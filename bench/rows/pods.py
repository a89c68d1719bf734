"""Rows ``create`` and ``writes``: pods on a real worker, from their creation to Running."""

import asyncio
from collections import Counter
from collections.abc import Iterable

from bench.cluster import installation, start_latency
from bench.cluster.bench_cluster import BenchCluster
from bench.measuring.figures import Figure, NotMeasuredError, at_most, ratio
from bench.measuring.percentiles import Percentiles
from bench.readings.audit_log import Write, counted

NAMESPACE = "bench-writes"
QUIET_SECONDS = 3.0
"""Without a write, after which all that a pod brings about is written."""
LOOKS = 12
"""How often within them: what is written meanwhile makes them begin anew, then and not at their end."""
SETTLED_SECONDS = 60.0
"""At least; more where there are many nodes."""
NODES_A_SECOND = 20.0


async def create_to_running(cluster: BenchCluster) -> list[Figure]:
    """A shared pod beside a plain one, one at a time and taking turns, on the same node."""
    await cluster.open_worker()
    times = await start_latency.measure(cluster.client, rounds=cluster.size.rounds, node=installation.WORKER)
    plain = Percentiles.of(times[start_latency.PLAIN.name])
    shared = Percentiles.of(times[start_latency.SHARED.name])
    return latency_figures(plain, shared)


def latency_figures(plain: Percentiles, shared: Percentiles) -> list[Figure]:
    return [
        Figure("create to Running, plain pod: p50", plain.p50, "ms"),
        Figure("create to Running, shared pod: p50", shared.p50, "ms"),
        Figure("create to Running, plain pod: p99", plain.p99, "ms"),
        Figure("create to Running, shared pod: p99", shared.p99, "ms"),
        Figure("shared over plain: p50", ratio(shared.p50, plain.p50, "p50"), target=at_most(1.05)),
        Figure("shared over plain: p99", ratio(shared.p99, plain.p99, "p99"), target=at_most(1.15)),
    ]


async def writes(cluster: BenchCluster) -> list[Figure]:
    """What the API server's audit log counts of our programs: Leases apart, which no pod causes."""
    await cluster.open_worker()
    count, client = cluster.size.written, cluster.client
    await start_latency.create_namespace(client, NAMESPACE)
    try:
        await settled(cluster)
        begun = cluster.audit.position()
        for number in range(count):
            body = start_latency.pod(f"shared-{number}", start_latency.SHARED, installation.WORKER)
            await start_latency.create_to_running(client, NAMESPACE, body)
        await settled(cluster)
        running = cluster.audit.since(begun)
        begun = cluster.audit.position()
        await asyncio.sleep(cluster.size.quiet_seconds)
        quiet = cluster.audit.since(begun)
    finally:
        await start_latency.remove_namespace(client, NAMESPACE)
    return write_figures(running, quiet, pods=count, seconds=cluster.size.quiet_seconds)


async def settled(cluster: BenchCluster) -> None:
    """Returns when our programs have written nothing but Leases for a while. Raises ``NotMeasuredError``."""
    nodes = cluster.layout.nodes + cluster.size.policy_nodes
    seconds = SETTLED_SECONDS + nodes / NODES_A_SECOND
    clock = asyncio.get_running_loop().time
    position, known = cluster.audit.position(), 0
    begun = last = clock()
    while clock() - last < QUIET_SECONDS:
        await asyncio.sleep(QUIET_SECONDS / LOOKS)
        found = [entry for entry in cluster.audit.since(position) if not entry.is_of_lease]
        if new := found[known:]:
            known, last = len(found), clock()
        if new and last - begun > seconds:
            what = ", ".join(sorted({f"{entry.program} {entry.resource}" for entry in new}))
            raise NotMeasuredError(f"still written after {seconds:g} s: {what}")


def require(found: Iterable[Write], program: str) -> None:
    """Raises ``NotMeasuredError`` where the log has no write of ``program``: then it is no witness."""
    if not counted(found, program):
        raise NotMeasuredError(f"the API server's audit log has no write of the {program}")


def write_figures(
    running: Iterable[Write], quiet: Iterable[Write], *, pods: int, seconds: float
) -> list[Figure]:
    """``running``: while pods were created; ``quiet``: while they ran and nothing happened.

    Raises:
        NotMeasuredError: the log does not have the bindings.
    """
    found, idle = list(running), list(quiet)
    require(found, "extender")
    extender, plugin = counted(found, "extender"), counted(found, "plugin")
    periodic = [entry for entry in idle if not entry.is_of_lease]
    return [
        Figure(f"by the extender per pod{_resources(extender)}", extender.total() / pods, "", at_most(1)),
        Figure(f"by the plugin per pod{_resources(plugin)}", plugin.total() / pods, "", at_most(1)),
        Figure("by the operator per pod", counted(found, "operator").total() / pods),
        Figure(f"in {seconds:g} s of quiet, by all programs", len(periodic), "", at_most(0)),
        Figure(f"to Leases in {seconds:g} s of quiet", len(idle) - len(periodic)),
    ]


def _resources(counts: Counter[str]) -> str:
    text = ", ".join(f"{resource} {count}" for resource, count in sorted(counts.items()))
    return f" ({text})" if text else ""
