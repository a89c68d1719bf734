"""How fast the running scheduler binds pods that are created all at once, as a watch sees it.

``python -m bench.schedule_throughput --kubeconfig FILE [--pods N] [--units U] [--scheduler NAME]``;
``--units 0`` requests nothing of ours, so the extender is not called: the rate to compare with.
"""

import argparse
import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from bench.cluster.cluster_objects import NAMESPACE, pending_pod
from bench.cluster.concurrency import for_each
from bench.measuring.percentiles import Percentiles

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.follow import Collection, Listed, follow
from gpushare_core.kube.request import ApiRequest
from gpushare_core.text.json_object import Json

PODS = paths.pods(NAMESPACE)
Labels = dict[str, str]


@dataclass(frozen=True, slots=True)
class Throughput:
    """How fast pods were bound."""

    created: int
    bound: int
    rate: float
    """Bound pods a second, from the first creation on."""
    wait: Percentiles
    """Seconds from create to bound."""

    def within(self, seconds: float) -> float:
        """Returns the rate; where not all pods were bound within ``seconds``, that of all this time."""
        return self.rate if self.bound == self.created else self.bound / seconds


@dataclass(slots=True)
class _Run:
    """When each pod was created and seen bound."""

    label: str = field(default_factory=lambda: uuid.uuid4().hex[:8])
    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    watching: asyncio.Event = field(default_factory=asyncio.Event)

    def result(self) -> Throughput:
        if not self.bound:
            raise TimeoutError(f"none of {len(self.created)} pods was bound: is the scheduler running?")
        took = max(self.bound.values()) - min(self.created.values())
        waits = [moment - self.created[name] for name, moment in self.bound.items()]
        return Throughput(len(self.created), len(self.bound), len(self.bound) / took, Percentiles.of(waits))


async def measure(
    client: KubeClient,
    *,
    pods: int,
    units: int,
    scheduler: str = "default-scheduler",
    deadline: float = 120.0,
    look: Callable[[str], Awaitable[None]] | None = None,
    asking: Callable[[Json], Json] = lambda pod: pod,
) -> Throughput:
    """Creates ``pods`` at once, waits until all are bound or ``deadline`` seconds are over, deletes them.

    ``look`` is awaited before they go, with a selector of their label. ``asking`` returns a pod that asks
    for more.

    Raises:
        TimeoutError: not one was bound.
    """

    def body(name: str, labels: Labels) -> Json:
        return asking(pending_pod(name, units=units, labels=labels, scheduler=scheduler))

    run = _Run()
    watcher = asyncio.create_task(_watch(client, run, pods))
    try:
        await asyncio.wait_for(run.watching.wait(), deadline)
        await _create(client, run, pods, body)
        await asyncio.wait({watcher}, timeout=deadline)
        if look:
            await look(f"bench-run={run.label}")
    finally:
        watcher.cancel()
        await _delete(client, run)
    return run.result()


async def _create(client: KubeClient, run: _Run, pods: int, body: Callable[[str, Labels], Json]) -> None:
    async def create(index: int) -> None:
        name = f"run-{run.label}-{index:05d}"
        run.created[name] = time.monotonic()
        await client.create(PODS, body(name, {"bench-run": run.label}))

    await for_each(range(pods), create)


async def _watch(client: KubeClient, run: _Run, pods: int) -> None:
    """Returns once all are bound."""
    collection = Collection(PODS, field_selector="spec.nodeName!=", label_selector=f"bench-run={run.label}")
    async for event in follow(client, collection):
        items = event.items if isinstance(event, Listed) else [event.item]
        run.watching.set()
        for item in items:
            run.bound.setdefault(item["metadata"]["name"], time.monotonic())
        if len(run.bound) == pods:
            return


async def _delete(client: KubeClient, run: _Run) -> None:
    async def delete(name: str) -> None:
        await client.send(ApiRequest(method="DELETE", path=f"{PODS}/{name}", body={"gracePeriodSeconds": 0}))

    await for_each(list(run.created), delete)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--pods", type=int, default=200)
    parser.add_argument("--units", type=int, default=4)
    parser.add_argument("--scheduler", default="default-scheduler")
    parser.add_argument("--deadline", type=float, default=120.0)
    options = parser.parse_args()
    async with KubeClient(from_kubeconfig(options.kubeconfig), timeout=60) as client:
        throughput = await measure(
            client,
            pods=options.pods,
            units=options.units,
            scheduler=options.scheduler,
            deadline=options.deadline,
        )
    wait = throughput.wait
    print(f"{throughput.bound} of {throughput.created} pods bound, {throughput.rate:.1f} a second")
    print(f"create to bound p50 {wait.p50:.3f} p99 {wait.p99:.3f} max {wait.highest:.3f} s")


if __name__ == "__main__":
    asyncio.run(main())
