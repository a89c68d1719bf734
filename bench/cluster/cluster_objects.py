"""Nodes, GPUShareNodes and pods as a cluster of real size would hold them."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.api.names import API_VERSION, NODE_KIND
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json

MOMENT = "2026-01-01T00:00:00Z"
RUNNING: Json = {"phase": "Running", "startTime": MOMENT}
NAMESPACE = "default"
TAINT = {"key": "bench.example/object", "effect": "NoSchedule"}
"""Of nodes without a kubelet: programs of the product, too, would be put there and never run."""
NODE_IMAGES = 40
"""A kubelet reports that many images of its node: the bulk of a Node object."""
ZONES = 3
RARE_IMAGE = "registry.example/models/weights:v1"
RARE_EVERY = 20
"""Every so many nodes have the rare image, which is so big that it is better run where it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How big the cluster is and how full. Every ``full_every``-th node has one big pod on each card, so
    that its total still looks sufficient for a request that no single card can take."""

    nodes: int
    cards: int = 8
    card_units: int = 16
    pods_per_node: int = 8
    units: int = 4
    full_every: int = 10
    full_units: int = 14

    def is_full(self, node: int) -> bool:
        return node % self.full_every == self.full_every - 1

    def pods(self, node: int) -> list["PlacedPod"]:
        """Returns the pods that run on ``node``."""
        if self.is_full(node):
            return [PlacedPod(node, card, self.full_units, card) for card in range(self.cards)]
        return [PlacedPod(node, place % self.cards, self.units, place) for place in range(self.pods_per_node)]

    def most_free(self, node: int) -> int:
        """Returns the free units of the emptiest card of ``node``."""
        used = [0] * self.cards
        for pod in self.pods(node):
            used[pod.card] += pod.units
        return self.card_units - min(used)


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """One running pod: so many units of one card of one node."""

    node: int
    card: int
    units: int
    place: int

    @property
    def name(self) -> str:
        return f"held-{self.node:05d}-{self.place}"


def node_name(node: int) -> str:
    return f"bench-{node:05d}"


def card_uuid(node: int, card: int) -> str:
    return f"GPU-{node:08x}-0000-4000-8000-{card:012x}"


def node(index: int, layout: Layout) -> Json:
    """A Node as a kubelet keeps it up, with our resource already in its capacity."""
    name = node_name(index)
    units = str(layout.cards * layout.card_units)
    amounts = {"cpu": "192", "memory": "1536Gi", "pods": "250", GPUSHARE.memory_resource: units}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": _labels(index)},
        "spec": {"taints": [TAINT]},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [_condition("Ready"), _condition("DiskPressure", status="False")],
            "images": _images(index),
        },
    }


def zone(index: int) -> str:
    return f"zone-{index % ZONES}"


def has_rare_image(index: int) -> bool:
    return index % RARE_EVERY == 0


def _labels(index: int) -> dict[str, str]:
    return {
        "kubernetes.io/hostname": node_name(index),
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": zone(index),
    }


def _images(index: int) -> list[Json]:
    common = [_image(number) for number in range(NODE_IMAGES)]
    rare = {"names": [RARE_IMAGE], "sizeBytes": 20 * 10**9}
    return [rare, *common] if has_rare_image(index) else common


def _condition(kind: str, *, status: str = "True") -> Json:
    since = {"lastHeartbeatTime": MOMENT, "lastTransitionTime": MOMENT}
    return {"type": kind, "status": status, "reason": "Bench", "message": "", **since}


def _image(number: int) -> Json:
    repository = f"registry.example/team-{number % 7}/workload-{number:03d}"
    return {"names": [f"{repository}@sha256:{number:064x}", f"{repository}:v1"], "sizeBytes": 10**9 + number}


def share_node(index: int) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": NODE_KIND,
        "metadata": {"name": node_name(index)},
        "spec": {"policy": "bench", "mode": "Memory", "memoryUnit": "1Gi", "devices": {"source": "NVML"}},
    }


def share_node_status(index: int, layout: Layout, uids: Mapping[str, str]) -> Json:
    """What the node's plugin would report; ``uids`` are those of its pods, by name."""
    registered = {"reason": "Bench", "message": "", "lastTransitionTime": MOMENT}
    return {
        "status": {
            "observedGeneration": 1,
            "memoryUnit": "1Gi",
            "conditions": [{"type": "Registered", "status": "True", **registered}],
            "cards": [_card(index, card, layout, uids) for card in range(layout.cards)],
        }
    }


def _card(index: int, card: int, layout: Layout, uids: Mapping[str, str]) -> Json:
    pods = [pod for pod in layout.pods(index) if pod.card == card]
    return {
        "index": card,
        "uuid": card_uuid(index, card),
        "model": "Bench",
        "memory": f"{layout.card_units}Gi",
        "units": layout.card_units,
        "allocatedUnits": sum(pod.units for pod in pods),
        "health": "Healthy",
        "pods": [_share(pod, uids[pod.name]) for pod in pods],
    }


def _share(pod: PlacedPod, uid: str) -> Json:
    return {
        "namespace": NAMESPACE,
        "name": pod.name,
        "uid": uid,
        "container": "main",
        "units": pod.units,
    }


def pending_pod(
    name: str, *, units: int = 0, labels: dict[str, str] | None = None, scheduler: str = "default-scheduler"
) -> Json:
    """A pending pod of one container; without units it requests nothing of ours."""
    ours = {GPUSHARE.memory_resource: str(units)} if units else {}
    container = {
        "name": "main",
        "image": "registry.example/team-1/workload-001:v1",
        "resources": {
            "limits": {"cpu": "500m", "memory": "1Gi", **ours},
            "requests": {"cpu": "100m", "memory": "256Mi", **ours},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"app": "bench", **(labels or {})}},
        "spec": {
            "containers": [container],
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{**TAINT, "operator": "Exists"}],
        },
    }


def running_pod(pod: PlacedPod) -> Json:
    """A pod that the extender bound earlier, still without its allocation: that names the pod's UID."""
    running = pending_pod(pod.name, units=pod.units)
    running["spec"]["nodeName"] = node_name(pod.node)
    return running


def running_status(pod: PlacedPod, uid: str) -> Json:
    """What its pod was given and reports since."""
    return {"metadata": {"annotations": allocation_of(pod, uid)}, "status": RUNNING}


def allocation_of(pod: PlacedPod, uid: str) -> dict[str, str]:
    """Returns the annotations of its pod."""
    shares = {card_uuid(pod.node, pod.card): pod.units}
    allocation = Allocation(
        node=node_name(pod.node), uid=uid, at=MOMENT, unit="1Gi", containers={"main": shares}, cards=shares
    )
    return {GPUSHARE.allocation_annotation: encode_allocation(allocation)}
