"""From create to Running: pods that request units beside plain pods, in the same run."""

import asyncio
import time
from dataclasses import dataclass

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.json_object import Json
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import Changed, Collection, follow

NAMESPACE = "bench-latency"
NAMESPACES = "/api/v1/namespaces"
PODS = paths.pods(NAMESPACE)


@dataclass(frozen=True, slots=True)
class PodKind:
    """A kind of pod to compare."""

    name: str
    limits: dict[str, str]


PLAIN = PodKind("plain", {})
SHARED = PodKind("shared", {GPUSHARE.memory_resource: "1"})


def pod(name: str, kind: PodKind) -> Json:
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
    """Returns the milliseconds from create to Running of ``rounds`` pods of each kind.

    One pod at a time, the kinds taking turns.
    """
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await _wait_for_service_account(client)
    times: dict[str, list[float]] = {PLAIN.name: [], SHARED.name: []}
    for number in range(rounds):
        for kind in (PLAIN, SHARED):
            times[kind.name].append(await _create_to_running(client, f"{kind.name}-{number}", kind))
    await client.delete(f"{NAMESPACES}/{NAMESPACE}")
    return times


async def _wait_for_service_account(client: KubeClient) -> None:
    accounts = Collection(f"{NAMESPACES}/{NAMESPACE}/serviceaccounts")
    async for event in follow(client, accounts):
        if isinstance(event, Changed) or event.items:
            return


async def _create_to_running(client: KubeClient, name: str, kind: PodKind) -> float:
    watching = asyncio.Event()
    running = asyncio.create_task(_wait_until_running(client, name, watching))
    await watching.wait()
    begun = time.perf_counter()
    await client.create(PODS, pod(name, kind))
    await asyncio.wait_for(running, 60)
    return (time.perf_counter() - begun) * 1e3


async def _wait_until_running(client: KubeClient, name: str, watching: asyncio.Event) -> None:
    """Returns when the pod runs; ``watching`` is set as soon as nothing can be missed."""
    async for event in follow(client, Collection(PODS, field_selector=f"metadata.name={name}")):
        watching.set()
        if isinstance(event, Changed) and event.item["status"].get("phase") == "Running":
            return
