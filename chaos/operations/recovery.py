"""After a node was away, waits until its kubelet has reported again: what is known of it is old."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import datetime

from chaos.world import World
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import PODS, lease_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.process.clock import utc_now
from gpushare_core.text.json_object import Json

NODE_LEASES = "kube-node-lease"
PATIENCE = 200.0
"""Seconds: a kubelet that starts while the API server is away retries with growing delays."""
INTERVAL = 0.3


class NodeStaysAwayError(Exception):
    """A node that was started does not come back; the text says what is missing."""


async def await_node(world: World, node: str) -> None:
    """Returns when the kubelet of ``node``, started before, reports again, and its pods are as it reports
    them. Raises ``NodeStaysAwayError``."""
    begun, deadline = utc_now(), asyncio.get_running_loop().time() + PATIENCE
    while missing := await _missing(world, node, begun):
        if asyncio.get_running_loop().time() > deadline:
            raise NodeStaysAwayError(f"node {node} is not back after {PATIENCE:g} s: {missing}")
        await asyncio.sleep(INTERVAL)


async def _missing(world: World, node: str, since: datetime) -> str:
    try:
        lease = await world.client.get(lease_path(NODE_LEASES, node))
        here = await world.client.send(
            ApiRequest(path=PODS, params={"fieldSelector": f"spec.nodeName={node}"})
        )
    except (ApiError, UnreachableError) as error:
        return str(error)
    if not is_renewed(lease, since):
        return "its kubelet has not renewed its Lease"
    records = await world.thread(world.cluster.containers)
    alive = {record.id for record in records if record.node == node and record.state == "running"}
    return ", ".join(outdated(here["items"], alive))


def is_renewed(lease: Json, since: datetime) -> bool:
    renewed = read_rfc3339(lease["spec"].get("renewTime") or "")
    return renewed is not None and renewed > since


def outdated(pods: Iterable[Json], alive: set[str]) -> Iterator[str]:
    """Yields the pods that run by the API server, and whose containers do not."""
    for pod in pods:
        if any(container not in alive for container in _running(pod)):
            yield f"{pod['metadata']['namespace']}/{pod['metadata']['name']} is said to run"


def _running(pod: Json) -> Iterator[str]:
    status = pod.get("status", {})
    for init_container_status in (
        *status.get("initContainerStatuses", ()),
        *status.get("containerStatuses", ()),
    ):
        if "running" in init_container_status.get("state", {}):
            yield init_container_status.get("containerID", "").rpartition("://")[2]
