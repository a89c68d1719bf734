"""From create to Running: pods that ask for units beside plain pods, in the same run."""

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import Changed, Collection, follow

NAMESPACE = "bench-latency"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """A sort of pod to compare."""

    name: str
    limits: dict[str, str]


PLAIN = Kind("plain", {})
SHARED = Kind("shared", {"gpushare.io/memory": "1"})


def pod(name: str, kind: Kind) -> Json:
    container = {
        "name": "main",
        "image": "busybox:stable",
        "command": ["sleep", "infinity"],
        "resources": {"limits": kind.limits},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


async def measure(client: KubeClient, *, rounds: int) -> dict[str, list[float]]:
    """Milliseconds from create to Running of ``rounds`` pods of each kind, one at a time, taking turns."""
    await client.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    await _account_ready(client)
    times: dict[str, list[float]] = {PLAIN.name: [], SHARED.name: []}
    for number in range(rounds):
        for kind in (PLAIN, SHARED):
            times[kind.name].append(await _one(client, f"{kind.name}-{number}", kind))
    await client.delete(f"/api/v1/namespaces/{NAMESPACE}")
    return times


async def _account_ready(client: KubeClient) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    async for event in follow(client, Collection(path)):
        if isinstance(event, Changed) or event.items:
            return


async def _one(client: KubeClient, name: str, kind: Kind) -> float:
    seen = asyncio.Event()
    running = asyncio.create_task(_running(client, name, seen))
    await seen.wait()
    begun = time.perf_counter()
    await client.post(PODS, pod(name, kind))
    await asyncio.wait_for(running, 60)
    return (time.perf_counter() - begun) * 1e3


async def _running(client: KubeClient, name: str, watching: asyncio.Event) -> None:
    """Return when the pod runs; ``watching`` is set as soon as nothing can be missed."""
    async for event in follow(client, Collection(PODS, field_selector=f"metadata.name={name}")):
        watching.set()
        if isinstance(event, Changed) and event.item["status"].get("phase") == "Running":
            return
