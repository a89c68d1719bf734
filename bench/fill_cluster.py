"""Fills a cluster with nodes that share cards and pods that hold parts of them, without any kubelet.

Run it against a cluster whose node lifecycle controller is off: nothing keeps these nodes alive.
``python -m bench.fill_cluster --kubeconfig FILE --nodes N``
"""

import argparse
import asyncio
import time
from pathlib import Path

from bench.cluster_objects import (
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
from bench.concurrency import for_each

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig


async def fill(client: KubeClient, layout: Layout) -> None:
    """Creates everything that ``layout`` describes; the CRDs must be there."""

    async def add_node(index: int) -> None:
        created = await client.create(paths.NODES, node(index, layout))
        if created["spec"].get("taints"):  # put there at admission, for a kubelet to take away
            await client.merge(f"{paths.NODES}/{node_name(index)}", {"spec": {"taints": None}})
        await client.create(paths.SHARE_NODES, share_node(index))

    async def add_pods(index: int) -> None:
        uids = {pod.name: await add_pod(pod) for pod in layout.pods(index)}
        path = f"{paths.SHARE_NODES}/{node_name(index)}/status"
        await client.merge(path, share_node_status(index, layout, uids))

    async def add_pod(pod: PlacedPod) -> str:
        created = await client.create(paths.pods(NAMESPACE), running_pod(pod))
        uid = str(created["metadata"]["uid"])
        await client.merge(f"{paths.pod_path(NAMESPACE, pod.name)}/status", running_status(pod, uid))
        return uid

    await for_each(range(layout.nodes), add_node)
    await for_each(range(layout.nodes), add_pods)


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
