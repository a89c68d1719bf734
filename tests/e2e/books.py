"""The four books, read independently, and what must be true of them together.

1. the annotation on the pod, 2. the kubelet's PodResources, 3. the container's environment,
4. the status of the GPUShareNode.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import grpc
from tests.e2e.observe import PODS, SHARE_NODES, Json, get
from tests.e2e.workloads import MEMORY

from gpushare_localcluster.cluster import LocalCluster
from gpushare_plugin.proto import podresources_pb2, podresources_pb2_grpc

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A container."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class Share:
    """Units of one card."""

    card: str
    units: int


Book = dict[Key, Share]


@dataclass(frozen=True, slots=True)
class Books:
    """What each book says of the containers in one namespace."""

    annotation: Book
    kubelet: dict[Key, frozenset[tuple[str, str]]]
    """(node, unit ID) pairs."""
    environment: Book
    status: Book
    capacity: dict[str, int]
    """Card -> units."""
    allocated: dict[str, int]
    """Card -> units, of all namespaces, by the status."""

    def disagreements(self) -> list[str]:
        """Everything that is not as it must be; empty when the books agree."""
        return [*self._differences(), *self._granted_twice(), *self._mixed_cards(), *self._over_full()]

    def _differences(self) -> Iterable[str]:
        for key in sorted({*self.annotation, *self.kubelet, *self.environment, *self.status}):
            told = [book.get(key) for book in (self.annotation, self.environment, self.status)]
            held = len(self.kubelet.get(key, ()))
            if len(set(told)) != 1 or told[0] is None or told[0].units != held:
                yield f"{key}: annotation, environment, status say {told}; the kubelet granted {held} units"

    def _granted_twice(self) -> Iterable[str]:
        counts = Counter(unit for units in self.kubelet.values() for unit in units)
        return [f"unit {unit} granted {count} times" for unit, count in counts.items() if count > 1]

    def _mixed_cards(self) -> Iterable[str]:
        """Units of one card are one card's in everybody's environment: an ID never changes its card."""
        owner: dict[tuple[str, str], str] = {}
        card_range: dict[str, list[str]] = {}
        for key, units in self.kubelet.items():
            card = self.environment[key].card if key in self.environment else "?"
            for unit in units:
                owner[unit] = card
                card_range.setdefault(card, []).append(unit[1])
        return [
            f"card {card}: {len(set(units))} different units of {self.capacity.get(card)}"
            for card, units in card_range.items()
            if len(set(units)) > self.capacity.get(card, 0)
        ]

    def _over_full(self) -> Iterable[str]:
        return [
            f"card {card}: {units} of {self.capacity[card]} units allocated"
            for card, units in self.allocated.items()
            if units > self.capacity[card]
        ]


def read_books(cluster: LocalCluster, namespace: str) -> Books:
    pods = get(cluster, PODS.format(namespace=namespace))["items"]
    running = [pod for pod in pods if pod["status"].get("phase") == "Running"]
    nodes = get(cluster, SHARE_NODES)["items"]
    cards = [card for node in nodes for card in node.get("status", {}).get("cards", ())]
    return Books(
        annotation=_from_annotations(running),
        kubelet=_from_kubelets(cluster, sorted({pod["spec"]["nodeName"] for pod in running}), namespace),
        environment=_from_environments(cluster, namespace),
        status=_from_status(cards, namespace),
        capacity={card["uuid"]: card["units"] for card in cards},
        allocated={card["uuid"]: card["allocatedUnits"] for card in cards},
    )


def _from_annotations(pods: Sequence[Json]) -> Book:
    book: Book = {}
    for pod in pods:
        metadata = pod["metadata"]
        allocation = json.loads(metadata.get("annotations", {}).get("gpushare.io/allocation", "{}"))
        for name, shares in allocation.get("containers", {}).items():
            for card, units in shares.items():
                book[Key(metadata["namespace"], metadata["name"], name)] = Share(card, units)
    return book


def _from_kubelets(
    cluster: LocalCluster, nodes: Iterable[str], namespace: str
) -> dict[Key, frozenset[tuple[str, str]]]:
    book = {}
    for node in nodes:
        for pod in pod_resources(cluster, node).pod_resources:
            for container in pod.containers:
                units = {
                    unit
                    for each in container.devices
                    for unit in each.device_ids
                    if each.resource_name == MEMORY
                }
                if units and pod.namespace == namespace:
                    key = Key(pod.namespace, pod.name, container.name)
                    book[key] = frozenset((node, unit) for unit in units)
    return book


def pod_resources(cluster: LocalCluster, node: str) -> podresources_pb2.ListPodResourcesResponse:
    """What the kubelet of ``node`` itself says, over its own socket."""
    with grpc.insecure_channel(f"unix:{cluster.node_path(node, SOCKET)}") as channel:
        stub = podresources_pb2_grpc.PodResourcesListerStub(channel)
        return stub.List(podresources_pb2.ListPodResourcesRequest(), timeout=10, wait_for_ready=True)


def _from_environments(cluster: LocalCluster, namespace: str) -> Book:
    records = [
        each for each in cluster.containers() if each.namespace == namespace and each.state == "running"
    ]
    return {
        Key(each.namespace, each.pod, each.container): Share(
            each.env["GPUSHARE_CARD"], int(each.env["GPUSHARE_UNITS"])
        )
        for each in records
        if "GPUSHARE_CARD" in each.env
    }


def _from_status(cards: Iterable[Json], namespace: str) -> Book:
    return {
        Key(pod["namespace"], pod["name"], pod["container"]): Share(card["uuid"], pod["units"])
        for card in cards
        for pod in card.get("pods", ())
        if pod["namespace"] == namespace
    }
