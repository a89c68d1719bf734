"""Fill a cluster with nodes that share cards and pods that hold parts of them, without any kubelet.

Run it against a cluster whose node lifecycle controller is off: nothing keeps these nodes alive.
``python -m bench.extender_fill --kubeconfig FILE --nodes N``
"""

import argparse
import asyncio
import time
from pathlib import Path

from bench.cluster_objects import (
    NAMESPACE,
    Held,
    Layout,
    node,
    node_name,
    running_pod,
    share_node,
    share_node_status,
)
from bench.many import for_each

from gpushare_core.api.names import API_VERSION, NODE_PLURAL
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig

SHARE_NODES = f"/apis/{API_VERSION}/{NODE_PLURAL}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
RUNNING = {"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"}}


async def fill(client: KubeClient, layout: Layout) -> None:
    """Create everything that ``layout`` tells; the CRDs must be there."""

    async def add_node(index: int) -> None:
        made = await client.post("/api/v1/nodes", node(index, layout))
        if made["spec"].get("taints"):  # put there at admission, for a kubelet to take away
            await client.patch(f"/api/v1/nodes/{node_name(index)}", {"spec": {"taints": None}})
        await client.post(SHARE_NODES, share_node(index))
        await client.patch(f"{SHARE_NODES}/{node_name(index)}/status", share_node_status(index, layout))

    async def add_pod(held: Held) -> None:
        await client.post(PODS, running_pod(held))
        await client.patch(f"{PODS}/{held.name}/status", RUNNING)

    await for_each(range(layout.nodes), add_node)
    await for_each((held for index in range(layout.nodes) for held in layout.held(index)), add_pod)


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
