"""From create to Running: pods that request units beside plain pods, on one node in the same run."""

import asyncio
import time
from dataclasses import dataclass

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.follow import Changed, Collection, follow
from gpushare_core.text.json_object import Json

NAMESPACES = "/api/v1/namespaces"
BATCH = 40
"""Pods of each kind side by side: a kubelet takes 110 of all kinds."""
RUNNING_SECONDS = 60.0
GONE_SECONDS = 120.0
POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class PodKind:
    """A kind of pod to compare."""

    name: str
    limits: dict[str, str]


PLAIN = PodKind("plain", {})
SHARED = PodKind("shared", {GPUSHARE.memory_resource: "1"})


def pod(name: str, kind: PodKind, node: str) -> Json:
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
        "spec": {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": node},
            "terminationGracePeriodSeconds": 0,
        },
    }


async def measure(client: KubeClient, *, rounds: int, node: str) -> dict[str, list[float]]:
    """Returns the milliseconds from create to Running of ``rounds`` pods of each kind on ``node``.

    One pod at a time, the kinds taking turns.

    Raises:
        TimeoutError: a pod did not run in time.
    """
    times: dict[str, list[float]] = {PLAIN.name: [], SHARED.name: []}
    for start in range(0, rounds, BATCH):
        namespace = f"bench-latency-{start}"
        await create_namespace(client, namespace)
        try:
            for number in range(start, min(start + BATCH, rounds)):
                for kind in (PLAIN, SHARED):
                    body = pod(f"{kind.name}-{number}", kind, node)
                    times[kind.name].append(await create_to_running(client, namespace, body))
        finally:
            await remove_namespace(client, namespace)
    return times


async def create_namespace(client: KubeClient, name: str) -> None:
    """Returns once pods can be created in it."""
    await client.create(NAMESPACES, {"metadata": {"name": name}})
    async with asyncio.timeout(RUNNING_SECONDS):
        async for event in follow(client, Collection(f"{NAMESPACES}/{name}/serviceaccounts")):
            if isinstance(event, Changed) or event.items:
                return


async def remove_namespace(client: KubeClient, name: str) -> None:
    """Returns once its pods are gone. Raises ``TimeoutError``."""
    await client.delete(f"{NAMESPACES}/{name}")
    deadline = time.monotonic() + GONE_SECONDS
    while (await client.get(paths.pods(name)))["items"]:
        if time.monotonic() > deadline:
            raise TimeoutError(f"pods of namespace {name} are not gone after {GONE_SECONDS:g} s")
        await asyncio.sleep(POLL_SECONDS)


async def create_to_running(client: KubeClient, namespace: str, body: Json) -> float:
    """Returns the milliseconds. Raises ``TimeoutError``."""
    name, watching = body["metadata"]["name"], asyncio.Event()
    running = asyncio.create_task(_wait_until_running(client, namespace, name, watching))
    try:
        await asyncio.wait_for(watching.wait(), RUNNING_SECONDS)
        begun = time.perf_counter()
        await client.create(paths.pods(namespace), body)
        await asyncio.wait_for(running, RUNNING_SECONDS)
    except TimeoutError:
        raise TimeoutError(f"pod {name} did not run within {RUNNING_SECONDS:g} s") from None
    finally:
        running.cancel()
    return (time.perf_counter() - begun) * 1e3


async def _wait_until_running(client: KubeClient, namespace: str, name: str, watching: asyncio.Event) -> None:
    """Returns when the pod runs; ``watching`` is set as soon as nothing can be missed."""
    collection = Collection(paths.pods(namespace), field_selector=f"metadata.name={name}")
    async for event in follow(client, collection):
        watching.set()
        if isinstance(event, Changed) and event.item.get("status", {}).get("phase") == "Running":
            return
