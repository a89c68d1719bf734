"""Rows ``policy``, ``changes`` and ``no-op``: the operator over many nodes, none of which has a kubelet."""

import asyncio
import json
import time
from dataclasses import dataclass, field

from bench.cluster import installation
from bench.cluster.bench_cluster import BenchCluster
from bench.cluster.cluster_objects import MOMENT, TAINT
from bench.cluster.concurrency import for_each
from bench.fill_cluster import create_node
from bench.measuring.figures import Figure, NotMeasuredError, at_most, ratio
from bench.measuring.once import Once
from bench.readings.audit_log import counted
from bench.rows.pods import require, settled

from gpushare_core.api.names import API_VERSION, NAMESPACE, NODE_KIND, POLICY_LABEL
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.text.json_object import Json

NAME = "bench"
LABEL = "bench.example/policy"
PROBE_LABEL = "bench.example/probe"
CHANGES = 20
"""GPUShareNode changes a second."""
APPLIED_SECONDS = 900.0
POLL_SECONDS = 0.2
QUIET_SECONDS = 2.0
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Applied:
    """Seconds that the same writes took one program without any other work, and the operator."""

    bare: float
    policy: float


@dataclass(slots=True)
class PolicyCluster:
    """A cluster with bare nodes for one policy, and what it took to apply it."""

    bench: BenchCluster
    _applied: Once[str, Applied] = field(default_factory=Once)

    async def applied(self) -> Applied:
        return await self._applied.get(NAME, self._apply)

    async def _apply(self) -> Applied:
        client, count = self.bench.client, self.bench.size.policy_nodes
        await for_each(range(count), lambda index: create_node(client, bare_node(index)))
        bare = await timed_bare_writes(client, count)
        await self.bench.uncordon(installation.WORKER)
        await self.bench.thread(installation.install_programs, self.bench.cluster, "External")
        await self.bench.thread(_wait_for_operator, self.bench)
        begun = time.monotonic()
        await self.bench.thread(self.bench.cluster.kubectl, "apply", "-f", "-", stdin=json.dumps(policy()))
        await _until_applied(client, count, deadline=begun + APPLIED_SECONDS)
        return Applied(bare, time.monotonic() - begun)


async def application(cluster: PolicyCluster) -> list[Figure]:
    """From the policy to the last label, GPUShareNode and the status, over the same writes made bare."""
    applied = await cluster.applied()
    use = await cluster.bench.footprint("operator")
    count = cluster.bench.size.policy_nodes
    return [
        Figure(f"bare writes of {count:,} nodes", applied.bare, "s"),
        Figure(f"policy over {count:,} nodes", applied.policy, "s"),
        Figure(
            "policy over bare writes",
            ratio(applied.policy, applied.bare, "policy over bare writes"),
            target=at_most(1.5),
        ),
        Figure(f"operator, {count:,} nodes", use.resident, "MiB", at_most(160)),
        Figure(f"operator, {count:,} nodes: peak", use.peak, "MiB"),
    ]


async def changes(cluster: PolicyCluster) -> list[Figure]:
    """What the operator makes of plugins that report all the time."""
    await cluster.applied()
    bench = cluster.bench
    await _until_rolled_out(bench.client, bench.size.policy_nodes)
    await settled(bench)
    before = await bench.footprint("operator")
    begun = time.monotonic()
    made = await change(bench.client, bench.size.policy_nodes, seconds=bench.size.change_seconds)
    took = time.monotonic() - begun
    after = await bench.footprint("operator")
    return [
        Figure("GPUShareNode changes", made / took, "/s"),
        Figure(
            f"operator at {CHANGES} changes/s",
            100 * (after.cpu - before.cpu) / took,
            "% of a core",
            at_most(10),
        ),
        Figure("operator after the changes", after.resident, "MiB"),
    ]


async def no_op(cluster: PolicyCluster) -> list[Figure]:
    """What the operator writes when it looks at a policy again that has not changed: the audit log counts."""
    await cluster.applied()
    bench = cluster.bench
    await settled(bench)
    begun = bench.audit.position()
    touched = {"metadata": {"annotations": {"bench.example/touched": "yes"}}}
    await bench.client.merge(f"{paths.POLICIES}/{NAME}", touched)
    await asyncio.sleep(bench.size.quiet_seconds)
    require(bench.audit.since(0), "operator")
    written = counted(bench.audit.since(begun), "operator")
    what = ", ".join(sorted(written)) or "none"
    return [Figure(f"writes of a reconcile that changes nothing ({what})", written.total(), "", at_most(0))]


def bare_node(index: int) -> Json:
    """A Node that nothing has looked at yet."""
    name = _node_name(index)
    amounts = {"cpu": "192", "memory": "1536Gi", "pods": "250"}
    ready = {"type": "Ready", "status": "True", "reason": "Bench", "message": ""}
    times = {"lastHeartbeatTime": MOMENT, "lastTransitionTime": MOMENT}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {LABEL: "yes", "kubernetes.io/hostname": name}},
        "spec": {"taints": [TAINT]},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [{**ready, **times}]},
    }


def _node_name(index: int) -> str:
    return f"bare-{index:05d}"


def policy() -> Json:
    """One rule that takes all bare nodes. No scheduler is connected: that is not measured here."""
    simulated = [{"count": 8, "memory": "16Gi"}]
    rule = {
        "selector": {"matchLabels": {LABEL: "yes"}},
        "devices": {"source": "Simulated", "simulated": simulated},
    }
    return {
        "apiVersion": API_VERSION,
        "kind": "GPUSharePolicy",
        "metadata": {"name": NAME},
        "spec": {"nodes": [rule], "scheduler": {"backend": "External"}},
    }


async def timed_bare_writes(client: KubeClient, count: int) -> float:
    """Returns the seconds for a label and a GPUShareNode of each node, as many at a time as the operator's
    client has connections. Takes them back, untimed."""

    async def write(index: int) -> None:
        await client.merge(
            f"{paths.NODES}/{_node_name(index)}", {"metadata": {"labels": {PROBE_LABEL: "yes"}}}
        )
        await client.create(paths.SHARE_NODES, _probe(index))

    async def take_back(index: int) -> None:
        await client.delete(f"{paths.SHARE_NODES}/{_probe_name(index)}")

    begun = time.monotonic()
    await for_each(range(count), write)
    took = time.monotonic() - begun
    await for_each(range(count), take_back)
    return took


def _probe(index: int) -> Json:
    devices = {"source": "Simulated", "simulated": [{"count": 8, "memory": "16Gi"}]}
    spec = {"policy": NAME, "mode": "Memory", "memoryUnit": "1Gi", "devices": devices}
    metadata = {"name": _probe_name(index)}
    return {"apiVersion": API_VERSION, "kind": NODE_KIND, "metadata": metadata, "spec": spec}


def _probe_name(index: int) -> str:
    return f"probe-{index:05d}"


def _wait_for_operator(bench: BenchCluster) -> None:
    deployment = ("deployment/gpushare-operator", "-n", NAMESPACE)
    bench.cluster.kubectl("rollout", "status", *deployment, "--timeout=120s")


async def _until_applied(client: KubeClient, count: int, *, deadline: float) -> None:
    """Raises ``TimeoutError``, with what is missing."""
    while lacking := await missing(client, count):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the policy is not applied after {APPLIED_SECONDS:g} s: {lacking}")
        await asyncio.sleep(POLL_SECONDS)


async def missing(client: KubeClient, count: int) -> str:
    """Returns what a policy over ``count`` nodes lacks yet; the cheap question first."""
    status = (await client.get(f"{paths.POLICIES}/{NAME}")).get("status") or {}
    if (enabled := (status.get("nodes") or {}).get("enabled", 0)) != count:
        return f"its status counts {enabled} of {count} nodes"
    # To count thousands of objects costs the API server as much as a hundred writes: not before the last is
    # there.
    last = await client.get(f"{paths.NODES}/{_node_name(count - 1)}")
    if last["metadata"]["labels"].get(POLICY_LABEL) != NAME:
        return "the last of the nodes is not labelled"
    share_nodes = await _count(client, paths.SHARE_NODES, "")
    if share_nodes < count:
        return f"{share_nodes} of {count} GPUShareNodes are there"
    labelled = await _count(client, paths.NODES, f"{POLICY_LABEL}={NAME}")
    return "" if labelled >= count else f"{labelled} of {count} nodes are labelled"


async def _until_rolled_out(client: KubeClient, count: int) -> None:
    """Returns once there is a pod of the plugin for each node: they are others' changes, which the operator
    hears of as well, and a controller makes them by and by. Raises ``NotMeasuredError``."""
    deadline = time.monotonic() + APPLIED_SECONDS
    while (made := await _rolled_out(client)) < count:
        if time.monotonic() > deadline:
            raise NotMeasuredError(f"the plugin has {made} of {count} pods after {APPLIED_SECONDS:g} s")
        await asyncio.sleep(QUIET_SECONDS)


async def _rolled_out(client: KubeClient) -> int:
    pages = client.pages(paths.daemon_sets(NAMESPACE), limit=PAGE)
    statuses = [item.get("status") or {} async for page in pages for item in page.items]
    return sum(status.get("currentNumberScheduled", 0) for status in statuses)


async def _count(client: KubeClient, path: str, label_selector: str) -> int:
    return sum(
        [len(page.items) async for page in client.pages(path, limit=PAGE, label_selector=label_selector)]
    )


async def change(client: KubeClient, nodes: int, *, seconds: float) -> int:
    """Writes the status of one GPUShareNode after the other, evenly. Returns how many times."""
    begun, made = time.monotonic(), 0
    async with asyncio.TaskGroup() as group:
        while (now := time.monotonic()) < begun + seconds:
            group.create_task(_report(client, made % nodes, made))
            made += 1
            await asyncio.sleep(max(0.0, begun + made / CHANGES - now))
    return made


async def _report(client: KubeClient, index: int, number: int) -> None:
    await client.merge(f"{paths.SHARE_NODES}/{_node_name(index)}/status", report(number))


def report(number: int) -> Json:
    """A status as a plugin writes it, another one for each ``number``."""
    allocated = number % 16
    card = {
        "index": 0,
        "uuid": "GPU-0",
        "model": "Bench",
        "memory": "16Gi",
        "units": 16,
        "allocatedUnits": allocated,
        "health": "Healthy",
        "pods": [],
    }
    condition = {
        "type": "Registered",
        "status": "True",
        "reason": "Registered",
        "message": f"report {number}",
        "lastTransitionTime": MOMENT,
    }
    return {
        "status": {
            "observedGeneration": 1,
            "memoryUnit": "1Gi",
            "conditions": [condition],
            "units": {"total": 16, "allocated": allocated},
            "cards": [card],
        }
    }
