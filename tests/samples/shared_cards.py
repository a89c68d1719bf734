"""GPUShareNodes and pods as the API server has them, short to write, for the command line's tests."""

from typing import Any

import msgspec
from msgspec import Raw

from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.objects.pending_pod import PendingPod, read_pending_pod
from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.text.json_object import Json

MOMENT = "2026-01-02T03:00:00Z"
ALLOCATION = "gpushare.io/allocation"


def share(
    pod: str,
    units: int,
    *,
    used: str = "0",
    container: str = "main",
    orphaned: bool = False,
    **isolation: str,
) -> Json:
    """What a container holds of a card. ``pod``: with its namespace; the UID is that text, too."""
    namespace, name = pod.split("/")
    return {
        "namespace": namespace,
        "name": name,
        "uid": pod,
        "container": container,
        "units": units,
        "usedMemory": used,
        "orphaned": orphaned,
        **isolation,
    }


def card(index: int, units: int, *shares: Json, memory: str = "16Gi", node: str = "n1", **more: Any) -> Json:
    return {
        "index": index,
        "uuid": f"GPU-{node}-{index}",
        "model": "Sim",
        "memory": memory,
        "units": units,
        "allocatedUnits": sum(held["units"] for held in shares),
        "usedMemory": "0",
        "health": "Healthy",
        "pods": [*shares],
        **more,
    }


def condition(type_: str, status: str, reason: str = "Test", message: str = "") -> Json:
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": MOMENT,
    }


HEALTHY = (condition("Registered", "True"), condition("CardsHealthy", "True"))
WITHIN = condition("MemoryExceeded", "False", "WithinRequests")
HOOK = {"memory": "Hook"}
EVICTING = {**HOOK, "onExcess": "Evict", "graceSeconds": 60}
HELD = (
    *HEALTHY,
    WITHIN,
    condition("IsolationReady", "True", "Hook"),
    condition("IsolationInForce", "True", "AllHeld"),
)
"""Conditions of a node whose containers are held to their units."""
NO_HOOK = "The hook's library is not in the plugin's image. Install the image of a release."
UNABLE = (*HEALTHY, WITHIN, condition("IsolationReady", "False", "HookMissing", NO_HOOK))


def share_node_object(
    name: str,
    *cards: Json,
    mode: str = "Memory",
    unit: str = "1Gi",
    dialect: str = "gpushare.io",
    scope: str = "Containers",
    conditions: tuple[Json, ...] = (*HEALTHY, WITHIN),
    faults: tuple[Json, ...] = (),
    given: str | None = None,
    **spec: Any,
) -> Json:
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUShareNode",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "policy": "default",
            "mode": mode,
            "memoryUnit": "1Gi",
            "dialect": dialect,
            "measurement": {"scope": scope},
            **({"slicesPerCard": int(unit[2])} if mode == "Slices" else {}),
            **({"slicesPerCard": 2} if mode == "Mixed" else {}),
            **spec,
        },
        "status": {
            "observedGeneration": 1,
            "memoryUnit": unit,
            "dialect": dialect,
            "conditions": [*conditions],
            "cards": [*cards],
            "faults": [*faults],
            **({} if given is None else {"isolation": given}),
        },
    }


def pending_pod_object(
    pod: str,
    units: int,
    *,
    resource: str = "gpushare.io/memory",
    node: str = "",
    card: str = "",
    message: str = "",
    **metadata: Any,
) -> Json:
    """A pod in phase Pending, bound to ``node`` with units of ``card`` (UUID) where these are given."""
    namespace, name = pod.split("/")
    annotations = {}
    if card:
        shares = {card: units}
        allocation = Allocation(
            node=node, uid=pod, at=MOMENT, unit="1Gi", containers={"main": shares}, cards=shares
        )
        annotations[ALLOCATION] = encode_allocation(allocation)
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    return {
        "metadata": {
            "namespace": namespace,
            "name": name,
            "uid": pod,
            "creationTimestamp": MOMENT,
            "annotations": annotations,
            **metadata,
        },
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": {resource: str(units)}}}],
        },
        "status": {"phase": "Pending", "conditions": [refused] if message else []},
    }


def raw(item: Json) -> Raw:
    return Raw(msgspec.json.encode(item))


def pending(item: Json) -> PendingPod:
    pod = read_pending_pod(raw(item))
    assert pod is not None
    return pod


def reading(*nodes: Json, pods: tuple[Json, ...] = (), **more: Any) -> ClusterReading:
    return ClusterReading(share_nodes=[*map(raw, nodes)], pending=[*map(pending, pods)], **more)
