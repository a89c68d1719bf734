"""Fills a cluster with nodes that share cards and pods that hold parts of them, without any kubelet.

Run it against a cluster whose node lifecycle controller is off: nothing keeps these nodes alive.
``python -m bench.fill_cluster --kubeconfig FILE --nodes N``
"""

import argparse
import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from bench.cluster.cluster_objects import (
    NAMESPACE,
    Layout,
    PlacedPod,
    node,
    node_name,
    running_pod,
    running_status,
    share_node,
    share_node_status,
)
from bench.cluster.concurrency import for_each

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.text.json_object import Json

PAGE = 1000


async def fill(client: KubeClient, layout: Layout) -> None:
    """Creates everything that ``layout`` describes; the CRDs must be there."""

    async def add_node(index: int) -> None:
        await create_node(client, node(index, layout))
        for pod in layout.pods(index):
            await _add_pod(client, pod)

    await for_each(range(layout.nodes), add_node)
    await fill_share_nodes(client, layout)


async def create_node(client: KubeClient, body: Json) -> None:
    """Creates a node that pods can be bound to at once: no taint but its own keeps them off."""
    created = await client.create(paths.NODES, body)
    own = body["spec"]["taints"]
    if created["spec"]["taints"] != own:  # put there at admission, for a kubelet to take away
        await client.merge(f"{paths.NODES}/{body['metadata']['name']}", {"spec": {"taints": own}})


async def fill_share_nodes(client: KubeClient, layout: Layout) -> None:
    """Creates the missing GPUShareNodes of ``layout``, with the status that a plugin would write."""
    present = {node["metadata"]["name"] async for node in _each(client, paths.SHARE_NODES)}
    held = [pod["metadata"] async for pod in _each(client, paths.pods(NAMESPACE))]
    uids = {metadata["name"]: metadata["uid"] for metadata in held}

    async def add(index: int) -> None:
        await create_share_node(client, index, layout, uids)

    await for_each([index for index in range(layout.nodes) if node_name(index) not in present], add)


async def create_share_node(client: KubeClient, index: int, layout: Layout, uids: Mapping[str, str]) -> None:
    """``uids``: of the node's pods, by name."""
    await client.create(paths.SHARE_NODES, share_node(index))
    status = share_node_status(index, layout, uids)
    await client.merge(f"{paths.SHARE_NODES}/{node_name(index)}/status", status)


async def _add_pod(client: KubeClient, pod: PlacedPod) -> None:
    created = await client.create(paths.pods(NAMESPACE), running_pod(pod))
    status = running_status(pod, str(created["metadata"]["uid"]))
    await client.merge(f"{paths.pod_path(NAMESPACE, pod.name)}/status", status)


async def _each(client: KubeClient, path: str) -> AsyncIterator[Json]:
    async for page in client.pages(path, limit=PAGE):
        for item in page.items:
            yield item


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods-per-node", type=int, default=8)
    options = parser.parse_args()
    layout = Layout(nodes=options.nodes, pods_per_node=options.pods_per_node)
    begun = time.monotonic()
    async with KubeClient(from_kubeconfig(options.kubeconfig), timeout=60) as client:
        await fill(client, layout)
    print(f"{layout.nodes} nodes and their pods in {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    asyncio.run(main())
