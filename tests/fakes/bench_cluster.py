"""A cluster as the benchmark's rows use it: the fake API server, and a scheduler that does not choose."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.cluster.bench_cluster import ALGORITHM, BINDS, BenchCluster, Setting
from bench.cluster.cluster_objects import MOMENT, NAMESPACE, Layout, card_uuid, node_name
from bench.cluster.waiting_pods import UNFIT_CPUS, UNFIT_UNITS
from bench.engines.nodes import NOBODY
from bench.measuring.size import QUICK, Size
from bench.peers.programs import api_server
from bench.readings.audit_log import AuditLog
from bench.readings.footprint import Footprint
from bench.readings.scheduler_metrics import ATTEMPTS as ALL_ATTEMPTS
from bench.rows.one_node import ATTEMPTS

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.follow import Collection, Listed, follow
from gpushare_core.text.json_object import Json

REFUSED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no card"}


@dataclass(slots=True)
class Scheduler:
    """Binds every pod to the next node, to the next card; what is too big for a card or a node it refuses."""

    client: KubeClient
    layout: Layout
    attempts: int = 1
    """Of each pod."""
    evicting: Callable[[Json], Sequence[str]] = lambda _: ()
    """Which pods have to go for one that asks for so much."""
    bound: dict[str, str] = field(default_factory=dict)
    """Pod -> node."""

    async def run(self) -> None:
        async for event in follow(self.client, Collection(paths.pods(NAMESPACE))):
            for pod in event.items if isinstance(event, Listed) else [event.item]:
                is_ours = pod["spec"].get("schedulerName") != NOBODY
                if is_ours and not pod["spec"].get("nodeName") and pod["metadata"]["name"] not in self.bound:
                    await self._schedule(pod)

    async def _schedule(self, pod: Json) -> None:
        name, units = pod["metadata"]["name"], _units(pod)
        path = paths.pod_path(NAMESPACE, name)
        if units >= UNFIT_UNITS or _cpus(pod) == str(UNFIT_CPUS):
            if not pod.get("status"):
                await self.client.merge(f"{path}/status", {"status": {"conditions": [REFUSED]}})
            return
        if self.attempts > 1:
            await self.client.merge(f"{path}/status", {"status": {"conditions": [REFUSED]}})
        for victim in self.evicting(pod):
            await self.client.delete(paths.pod_path(NAMESPACE, victim))
        index = len(self.bound) % self.layout.nodes
        self.bound[name] = node_name(index)
        card = card_uuid(index, len(self.bound) // self.layout.nodes % self.layout.cards)
        metadata = {"annotations": _annotations(pod, node_name(index), card, units)} if units else {}
        bound = {"metadata": metadata, "spec": {"nodeName": node_name(index)}, "status": {"conditions": []}}
        await self.client.merge(path, bound)


def _units(pod: Json) -> int:
    limits = pod["spec"]["containers"][0]["resources"]["limits"]
    return int(limits.get(GPUSHARE.memory_resource, 0))


def _cpus(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _annotations(pod: Json, node: str, card: str, units: int) -> dict[str, str]:
    shares, uid = {card: units}, pod["metadata"]["uid"]
    allocation = Allocation(
        node=node, uid=uid, at=MOMENT, unit="1Gi", containers={"main": shares}, cards=shares
    )
    return {GPUSHARE.allocation_annotation: encode_allocation(allocation)}


class PretendCluster(BenchCluster):
    """Runs no process of ours: what a process would use and show is invented from what the scheduler has
    done."""

    scheduler: Scheduler
    cpu: float = 0.0

    async def install(self) -> None:
        self._installed = True

    async def close_worker(self) -> None:
        await self.install()

    async def only_objects(self) -> None:
        await self.install()

    async def footprint(self, container: str) -> Footprint:
        self.cpu += 0.01
        return Footprint(container, "control-plane-1", 50.0, 60.0, self.cpu)

    async def scheduler_metrics(self) -> str:
        pods = len(self.scheduler.bound)
        lines = [f"{ALGORITHM}_sum {pods / 1000}", f"{ALGORITHM}_count {pods}"]
        lines += [f"{ATTEMPTS}_sum {pods * self.scheduler.attempts}", f"{ATTEMPTS}_count {pods}"]
        in_vain = pods * (self.scheduler.attempts - 1)
        lines += [f'{ALL_ATTEMPTS}{{result="scheduled"}} {pods}']
        lines += [f'{ALL_ATTEMPTS}{{result="unschedulable"}} {in_vain}']
        return "\n".join(lines)

    async def extender_metrics(self) -> str:
        return f'{BINDS}{{result="Bound"}} {len(self.scheduler.bound)}'

    async def extender_ledger(self) -> str:
        return json.dumps({"nodes": []})


@asynccontextmanager
async def pretend_cluster(folder: Path, **size: Any) -> AsyncIterator[PretendCluster]:
    """A cluster of a few nodes. ``size``: what is to be other than in ``QUICK``."""
    layout = Layout(nodes=3, pods_per_node=0, full_every=1000)
    async with api_server(folder) as kubeconfig, KubeClient(from_kubeconfig(kubeconfig)) as client:
        cluster = PretendCluster(
            cluster=None,  # type: ignore[arg-type]
            client=client,
            setting=Setting(layout=layout),
            size=_size(size),
            audit=AuditLog(folder / "audit.log"),
        )
        cluster.audit.path.touch()
        cluster.scheduler = Scheduler(client, layout)
        scheduling = asyncio.create_task(cluster.scheduler.run())
        try:
            yield cluster
        finally:
            scheduling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await scheduling


def _size(changed: dict[str, Any]) -> Size:
    small: dict[str, Any] = {
        "pods": 6,
        "repeats": 1,
        "candidates": (0, 16),
        "one_of": 5,
        "storm": 20,
        "unfit": 4,
        "unfit_rounds": 1,
        "churn_seconds": 3.0,
        "waiting": (4,),
        "preemptions": 2,
        "bursts": 2,
        **changed,
    }
    values = {name: getattr(QUICK, name) for name in QUICK.__dataclass_fields__}
    return Size(**{**values, **small})
