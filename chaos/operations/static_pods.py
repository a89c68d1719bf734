"""Static pods: files in a node's manifest folder, which no scheduler sees and no drain evicts."""

import asyncio

from chaos.world import NAMESPACE, World

MANIFESTS = "/etc/kubernetes/manifests"
PATIENCE = 120.0
"""Seconds: a kubelet looks for files every second, and its pods end seconds later; on a busy machine, much
later."""
INTERVAL = 0.3


def remove_file(world: World, *, node: str, name: str) -> None:
    """Ends the static pod ``name``. One that is not there is no error."""
    world.node_file(node, f"{MANIFESTS}/{name}.json").unlink(missing_ok=True)
    world.static_pod_removed(node, name)


def of_node(world: World, node: str) -> list[str]:
    """Returns the names of the static pods on ``node``, as their files have them."""
    return [mirror.removesuffix(f"-{node}") for mirror in world.static_pods if mirror.endswith(f"-{node}")]


async def end_all(world: World, node: str) -> None:
    """Returns when none of the static pods of ``node`` runs any more. Raises ``TimeoutError``."""
    names = of_node(world, node)
    for name in names:
        remove_file(world, node=node, name=name)
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while running := await _running(world, node, {f"{name}-{node}" for name in names}):
        if asyncio.get_running_loop().time() > deadline:
            those = ", ".join(sorted(running))
            raise TimeoutError(f"{those} still run on {node} {PATIENCE:g} s after their files went")
        await asyncio.sleep(INTERVAL)


async def _running(world: World, node: str, mirrors: set[str]) -> set[str]:
    records = await world.thread(world.cluster.containers)
    here = (record for record in records if (record.node, record.namespace) == (node, NAMESPACE))
    return {container.pod for container in here if container.pod in mirrors and container.state == "running"}
