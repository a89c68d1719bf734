"""Cards, pods, nodes and assignments for the plugin's tests."""

from array import array
from collections.abc import Sequence
from typing import Any

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.api.share_node import Devices, GPUShareNode
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import MemoryUnit
from gpushare_core.text.json_object import Json
from gpushare_plugin.decide.admit.injection import container_answer
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices, NodeAssignments
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredUnits, read_answer
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, PodName, read_pod
from gpushare_plugin.decide.held.preferred_cards import PreferredCards
from gpushare_plugin.decide.units.layout import Layout, lay_out
from gpushare_plugin.decide.units.unit_ids import encode_id
from gpushare_plugin.devices.card import PhysicalCard

GIB = 2**30
NODE = "gpu-1"
RESOURCE = GPUSHARE.memory_resource
ANNOTATION = GPUSHARE.allocation_annotation


def card(index: int, *, memory: int = 16 * GIB, healthy: bool = True, numa_node: int = 0) -> PhysicalCard:
    return PhysicalCard(
        uuid=f"GPU-{index}",
        index=index,
        memory=memory,
        healthy=healthy,
        numa_node=numa_node,
        reason="" if healthy else "Xid 79",
    )


def layout(*cards: PhysicalCard, unit: str = "1Gi", reserved: int = 0) -> Layout:
    """Two cards of 16 units when none are given: GPU-0 has units 0 to 15, GPU-1 has 16 to 31."""
    return lay_out(cards or (card(0), card(1)), MemoryUnit.parse(unit), reserved=reserved)


def ids(*numbers: int) -> list[str]:
    return [encode_id(number) for number in numbers]


def container(name: str = "main", units: int = 0, resource: str = RESOURCE, **extra: Any) -> Json:
    limits = {resource: str(units)} if units else {}
    return {"name": name, "resources": {"limits": limits}, **extra}


def sidecar(name: str, units: int) -> Json:
    return container(name, units, restartPolicy="Always")


def pod_json(
    name: str,
    *containers: Json,
    inits: tuple[Json, ...] = (),
    annotation: str | None = None,
    uid: str | None = None,
    node: str = NODE,
) -> Json:
    metadata: Json = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}"}
    metadata["creationTimestamp"] = "2026-11-21T09:00:00Z"
    if annotation is not None:
        metadata["annotations"] = {ANNOTATION: annotation.replace('"uid":""', f'"uid":"{metadata["uid"]}"')}
    spec = {"nodeName": node, "containers": list(containers), "initContainers": list(inits)}
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}


def pod(
    name: str,
    *containers: Json,
    inits: tuple[Json, ...] = (),
    annotation: str | None = None,
    deleting: bool = False,
) -> Pod:
    body = pod_json(name, *containers, inits=inits, annotation=annotation)
    if deleting:
        body["metadata"]["deletionTimestamp"] = "2026-11-21T10:00:00Z"
    return read_pod(body, ANNOTATION, GPUSHARE.resources)


def annotation(
    containers: dict[str, dict[str, int]] | None = None,
    *,
    node: str = NODE,
    unit: str = "1Gi",
    at: str = "2026-11-21T10:00:00Z",
    cards: dict[str, int] | None = None,
    uid: str = "",
    resource: ResourceClass = ResourceClass.MEMORY,
) -> str:
    """An allocation of the pod that ``pod`` or ``pod_json`` makes with it, unless it is another's ``uid``."""
    return encode_allocation(
        Allocation(
            node=node,
            uid=uid,
            at=at,
            unit=unit,
            resource=resource,
            containers=containers or {"main": {"GPU-0": 4}},
            cards=cards or {},
        )
    )


def by_name(*pods: Pod) -> dict[PodName, Pod]:
    return {pod.name: pod for pod in pods}


def name_of(name: str) -> PodName:
    return PodName("default", name)


def assigned(**pods: dict[str, list[int]]) -> AssignedDevices:
    """Pod name -> container -> numbers of the units it has."""
    assignments = (
        PodAssignment(
            name_of(pod),
            {container: array("I", sorted({*numbers})) for container, numbers in containers.items()},
        )
        for pod, containers in pods.items()
    )
    return AssignedDevices({assignment.name: assignment for assignment in assignments})


def node_assignments(devices: AssignedDevices, preferred: PreferredCards | None = None) -> NodeAssignments:
    """On ``NODE``, whose two cards have 16 units each."""
    return NodeAssignments(node=NODE, assigned=devices, layout=layout(), preferred=preferred or {})


def share_node(unit: str = "1Gi", *, status: Json | None = None, **spec: Any) -> GPUShareNode:
    return GPUShareNode.from_json(share_node_json(unit, status=status, **spec))


def share_node_json(unit: str = "1Gi", *, status: Json | None = None, **spec: Any) -> Json:
    devices = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}
    return {
        "metadata": {"name": NODE, "uid": "uid-node", "generation": 1},
        "spec": {"policy": "default", "mode": "Memory", "memoryUnit": unit, "devices": devices, **spec},
        "status": status or {},
    }


def stored(layout: Layout, **pods: dict[str, list[int]]) -> dict[str, dict[str, CheckpointEntry]]:
    """What the checkpoint says: pod name -> container -> numbers, given out under ``layout``."""
    return {
        f"uid-{pod}": {name: _entry(layout, f"uid-{pod}", name, numbers) for name, numbers in each.items()}
        for pod, each in pods.items()
    }


def environment(ids: Sequence[str], layout: Layout, dialect: Dialect) -> dict[str, str]:
    """Of a container that has the units ``ids``."""
    return container_answer(ids, layout, dialect, Devices()).variables


def _entry(layout: Layout, uid: str, container: str, numbers: list[int]) -> CheckpointEntry:
    variables = environment(ids(*numbers), layout, GPUSHARE)
    name = GPUSHARE.resource_name(layout.only.resource)
    return read_answer(StoredUnits(uid, container, name, array("I", sorted(numbers))), variables)
