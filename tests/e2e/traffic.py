"""Ordinary pods all the time, and how long each waited for its node."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from chaos.quiet import SINK
from chaos.traffic import ordinary_pod, present, sink_node
from tests.e2e.observe import CALL_SECONDS, NODES, PATIENCE, PODS, condition

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Collection, follow
from gpushare_localcluster.cluster import LocalCluster

INTERVAL = 0.2
"""Seconds between two pods."""

_PATH = PODS.format(namespace="default")


@dataclass
class Traffic:
    """Pods by name: when each was created, and when it was seen to have a node, by ``time.monotonic``."""

    created: dict[str, float] = field(default_factory=dict)
    scheduled: dict[str, float] = field(default_factory=dict)
    is_closed: bool = False

    def longest_wait(self, since: float, until: float) -> float:
        """Returns the seconds of the pod that waited longest, of those created in between."""
        return max(
            self.scheduled.get(name, time.monotonic()) - at
            for name, at in self.created.items()
            if since <= at < until
        )

    def is_done(self) -> bool:
        return self.scheduled.keys() == self.created.keys()


@contextlib.contextmanager
def flowing(cluster: LocalCluster) -> Iterator[Traffic]:
    """Has a pod created every INTERVAL while entered, and each deleted once it has its node."""
    traffic, stop = Traffic(), threading.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(_flow(cluster, traffic, stop))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield traffic
    finally:
        stop.set()
        thread.join()
    assert not failures, failures


async def _flow(cluster: LocalCluster, traffic: Traffic, stop: threading.Event) -> None:
    async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=CALL_SECONDS) as client:
        await client.create(NODES, sink_node())
        bound = asyncio.Queue[str]()
        watching = asyncio.create_task(_note_scheduled(client, traffic, bound))
        deleting = asyncio.create_task(_delete(client, bound))
        while not traffic.is_closed:
            traffic.is_closed = stop.is_set()
            name = f"ordinary-{len(traffic.created)}"
            traffic.created[name] = time.monotonic()
            await client.create(_PATH, ordinary_pod(name))
            await asyncio.sleep(INTERVAL)
        # A pod that finds no node at all is told by the test.
        await asyncio.wait([watching], timeout=PATIENCE)
        watching.cancel()
        with contextlib.suppress(TimeoutError):  # the next traffic has pods of the same names
            await asyncio.wait_for(bound.join(), PATIENCE)
        deleting.cancel()
        await client.delete(f"{NODES}/{SINK}")


async def _delete(client: KubeClient, bound: "asyncio.Queue[str]") -> None:
    """Beside the watch: a slow answer does not make other pods look as if they waited."""
    while True:
        name = await bound.get()
        with contextlib.suppress(ApiError, UnreachableError):
            await client.delete(f"{_PATH}/{name}")
        bound.task_done()


async def _note_scheduled(client: KubeClient, traffic: Traffic, bound: "asyncio.Queue[str]") -> None:
    """Until the last pod of closed traffic has its node."""
    async for event in follow(client, Collection(_PATH)):
        for pod in present(event):
            name = pod["metadata"]["name"]
            if condition(pod, "PodScheduled").get("status") == "True" and name not in traffic.scheduled:
                traffic.scheduled[name] = time.monotonic()
                bound.put_nowait(name)
        if traffic.is_closed and traffic.is_done():
            return
