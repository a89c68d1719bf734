"""Ordinary pods all the time, and how long each waited for its node (I6)."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from chaos.background import background
from chaos.deadlines import DEADLINES
from chaos.findings import Finding
from chaos.quiet import SINK, condition
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Changed, Collection, Listed, follow
from gpushare_core.kube.paths import NODES, pods
from gpushare_core.text.json_object import Json

INTERVAL = 1.0
"""Seconds between two pods."""
NAMESPACE = "ordinary"


@dataclass(slots=True)
class Traffic:
    """Pods without requests for our resources, on a node without a kubelet: when each was created and bound.

    Times are of ``time.monotonic``, from when the API server had stored the pod: while it is away, no pod can
    be scheduled.
    """

    client: KubeClient
    report: Callable[[Finding], None]
    """Called for pods that wait longer than the limit, and for what keeps pods from being watched."""
    longest_wait: float = DEADLINES.ordinary
    """Seconds that no pod may wait."""
    created: dict[str, float] = field(default_factory=dict)
    waited: dict[str, float] = field(default_factory=dict)
    _bound: "asyncio.Queue[str]" = field(default_factory=asyncio.Queue)
    """Names of pods to delete."""
    _blocked: bool = False
    """Whether it is told already that pods wait."""

    @property
    def longest(self) -> float:
        """Seconds, those that still wait included."""
        waiting = [time.monotonic() - at for name, at in self.created.items() if name not in self.waited]
        return max([*self.waited.values(), *waiting], default=0.0)

    @property
    def waiting(self) -> list[str]:
        """Those that have no node."""
        return sorted(self.created.keys() - self.waited.keys())

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Creates a pod every INTERVAL while it is entered; at the end waits until the last ones have
        nodes."""
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        await self.client.create(NODES, sink_node())
        async with (
            background(self._follow(), name="who follows ordinary pods", report=self.report),
            background(self._delete_bound(), name="who deletes ordinary pods", report=self.report),
        ):
            async with background(self._create(), name="who creates ordinary pods", report=self.report):
                yield
            await self._drain()
        await self.client.delete(f"{NODES}/{SINK}")

    async def _create(self) -> None:
        for number in range(1_000_000):
            name = f"ordinary-{number}"
            try:
                await self.client.create(pods(NAMESPACE), ordinary_pod(name))
            except (ApiError, UnreachableError):
                pass
            else:
                self.created.setdefault(name, time.monotonic())
            self.look()
            await asyncio.sleep(INTERVAL)

    def look(self) -> None:
        """Reports the pod that has waited longest, once for each time that pods are stuck."""
        now = time.monotonic()
        slow = [name for name in self.waiting if now - self.created[name] > self.longest_wait]
        if slow and not self._blocked:
            name = min(slow, key=lambda name: self.created[name])
            self.report(
                Finding(
                    rule="I6",
                    sentence=f"ordinary pod {name} has waited for a node for more than"
                    f" {self.longest_wait:g} s: kube-scheduler does not serve; see its logs of both"
                    " control planes",
                )
            )
        self._blocked = bool(slow)

    async def _follow(self) -> None:
        async for event in follow(self.client, Collection(pods(NAMESPACE))):
            for pod in present(event):
                name = pod["metadata"]["name"]
                if name not in self.waited and condition(pod, "PodScheduled").get("status") == "True":
                    self.waited[name] = time.monotonic() - self.created.setdefault(name, time.monotonic())
                    self._bound.put_nowait(name)

    async def _delete_bound(self) -> None:
        """Beside the watch: a slow answer does not make other pods look as if they waited."""
        while True:
            name = await self._bound.get()
            with contextlib.suppress(ApiError, UnreachableError):
                await self.client.delete(f"{pods(NAMESPACE)}/{name}")

    async def _drain(self) -> None:
        """Waits for the last ones as long as for any other, and as long again once that is reported."""
        deadline = time.monotonic() + 2 * self.longest_wait
        while self.waiting and time.monotonic() < deadline:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def present(event: Listed[Json] | Changed[Json]) -> Sequence[Json]:
    """Returns the objects that ``event`` shows to be there."""
    if isinstance(event, Listed):
        return event.items
    return [] if event.kind == "DELETED" else [event.item]


def sink_node() -> Json:
    """A node without a kubelet: what is scheduled there costs nothing more."""
    room = {"pods": "100000", "cpu": "100000", "memory": "100000Gi"}
    return {
        "metadata": {"name": SINK, "labels": {"kubernetes.io/hostname": SINK}},
        "spec": {"taints": [{"key": "chaos", "value": "sink", "effect": "NoSchedule"}]},
        "status": {"capacity": room, "allocatable": room},
    }


def ordinary_pod(name: str) -> Json:
    """Asks for nothing of ours, and goes to that node alone."""
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [{"name": "main", "image": "busybox:stable"}],
            "nodeSelector": {"kubernetes.io/hostname": SINK},
            "tolerations": [{"operator": "Exists"}],
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
        },
    }
