"""The objects that deleting policies changes."""

from typing import TypeVar

from gpushare_cli.decide.objects.share_node import ObservedShareNode
from gpushare_cli.decide.undo.objects import UndoLease, UndoNode, UndoObject, UndoObjects, UndoPolicy
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.cluster import COLLECTIONS
from gpushare_cli.gather.lists import read_list
from gpushare_cli.gather.pod_holders import read_booked
from gpushare_core.api.names import (
    COMPONENT_LABEL,
    FIELD_MANAGER,
    MANAGED_BY_LABEL,
    PLUGIN_NODE_LABEL,
    SCHEDULER_LABEL,
)
from gpushare_core.api.plugin_heartbeat import COMPONENT
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import LEASES, NODES, POLICIES, SHARE_NODES

T = TypeVar("T")

MANAGED = f"{MANAGED_BY_LABEL}={FIELD_MANAGER}"
INSTALLED = "app.kubernetes.io/name=gpushare"
"""The operator's Deployment, and what the operator makes."""
HEARTBEATS = f"{COMPONENT_LABEL}={COMPONENT}"
ADVICE = "nothing was changed; see that you may list it (ClusterRole gpushare-auditor)"


async def read_undo_objects(client: KubeClient) -> UndoObjects:
    """Raises ``CannotLookError``."""
    labelled = [
        node
        for label in (PLUGIN_NODE_LABEL, SCHEDULER_LABEL)
        for node in await read_list(client, NODES, shape=UndoNode, label_selector=label, advice=ADVICE)
    ]
    share_nodes = await _own(client, SHARE_NODES, shape=ObservedShareNode)
    return UndoObjects(
        policies=await _own(client, POLICIES, shape=UndoPolicy),
        share_nodes=share_nodes,
        booked=await read_booked(client, [share_node.name for share_node in share_nodes]),
        nodes=[*{node.name: node for node in labelled}.values()],
        daemon_sets=await _made(client, "DaemonSet", MANAGED),
        deployments=await _made(client, "Deployment", INSTALLED),
        jobs=await _made(client, "Job", MANAGED),
        config_maps=await _made(client, "ConfigMap", MANAGED),
        leases=await read_list(client, LEASES, shape=UndoLease, label_selector=HEARTBEATS, advice=ADVICE),
    )


async def _made(client: KubeClient, kind: str, labels: str) -> list[UndoObject]:
    path = COLLECTIONS[kind]
    return await read_list(client, path, shape=UndoObject, label_selector=labels, advice=ADVICE)


async def _own(client: KubeClient, path: str, *, shape: type[T]) -> list[T]:
    """Returns none where the CustomResourceDefinitions are not there (any more)."""
    try:
        return await read_list(client, path, shape=shape, advice=ADVICE)
    except CannotLookError as error:
        if isinstance(error.__cause__, ApiError) and error.__cause__.is_not_found:
            return []
        raise
