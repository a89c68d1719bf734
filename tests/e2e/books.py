"""The four books, read independently, and what must be true of them together.

1. the annotation on the pod, 2. the kubelet's PodResources, 3. the container's environment,
4. the status of the GPUShareNode.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import grpc
from tests.e2e.observe import PODS, SHARE_NODES, Json, get

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import parse_memory
from gpushare_localcluster.cluster import LocalCluster
from gpushare_plugin.decide.unit_ids import decode_id
from gpushare_plugin.kubelet.pod_resources import LIST
from gpushare_plugin.kubelet.proto import podresources_pb2 as api

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"


@dataclass(frozen=True, slots=True, order=True)
class Key:
    """A container."""

    namespace: str
    pod: str
    container: str


@dataclass(frozen=True, slots=True)
class Share:
    """What one container has: its card, or several in order with commas between them, and units of all."""

    card: str
    units: int

    @classmethod
    def of(cls, shares: Mapping[str, int]) -> "Share | None":
        """``shares``: card -> units."""
        return cls(",".join(sorted(shares)), sum(shares.values())) if shares else None

    @property
    def cards(self) -> list[str]:
        return self.card.split(",")


Unit = tuple[str, str]
"""Node, unit ID."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Which card a unit ID names, by what each plugin recorded."""

    cards: dict[str, list[tuple[str, range]]]
    """Node -> (card, numbers that it has room for)."""

    def card(self, unit: Unit) -> str:
        node, unit_id = unit
        number = decode_id(unit_id)
        for card, numbers in self.cards[node]:
            if number in numbers:
                return card
        return f"no card of {node} has {unit_id}"


def read_layout(nodes: Iterable[Json]) -> Layout:
    return Layout({node["metadata"]["name"]: _rooms(node.get("status", {})) for node in nodes})


def _rooms(status: Json) -> list[tuple[str, range]]:
    unit = status.get("memoryUnit") or "1Gi"
    return [
        (card["uuid"], range(card["firstUnit"], card["firstUnit"] + units_of_card(card["memory"], unit)))
        for card in status.get("cards", ())
    ]


def units_of_card(memory: str, unit: str) -> int:
    """How many units a card of ``memory`` has; ``unit``: memory, ``1/4 card``, ``1 card``, or all three."""
    if ", " in unit:
        return sum(units_of_card(memory, part) for part in unit.split(", "))
    if unit.endswith(" card"):
        return int(Fraction(1) / Fraction(unit.removesuffix(" card")))
    return parse_memory(memory) // parse_memory(unit)


Book = dict[Key, Share]


@dataclass(frozen=True, slots=True)
class Books:
    """What each book says of the containers in one namespace."""

    annotation: Book
    kubelet: dict[Key, frozenset[Unit]]
    resources: dict[Key, str]
    """What each container has units of, by its kubelet."""
    environment: Book
    status: Book
    layout: Layout
    capacity: dict[str, int]
    """Card -> units."""
    allocated: dict[str, int]
    """Card -> units, of all namespaces, by the status."""

    def disagreements(self) -> list[str]:
        """Everything that is not as it must be; empty when the books agree."""
        return [
            *self._differences(),
            *self._granted_twice(),
            *self._over_full(),
            *self._of_two_classes(),
        ]

    def _differences(self) -> Iterable[str]:
        for key in sorted({*self.annotation, *self.kubelet, *self.environment, *self.status}):
            granted = Share.of(Counter(map(self.layout.card, self.kubelet.get(key, frozenset()))))
            told = [self.annotation.get(key), granted, self.environment.get(key), self.status.get(key)]
            if len(set(told)) != 1 or told[0] is None:
                yield f"{key}: annotation, PodResources, environment, status say {told}"

    def _granted_twice(self) -> Iterable[str]:
        counts = Counter(unit for units in self.kubelet.values() for unit in units)
        return [f"unit {unit} granted {count} times" for unit, count in counts.items() if count > 1]

    def _of_two_classes(self) -> Iterable[str]:
        """No card serves two resources at a time."""
        found: dict[str, set[str]] = defaultdict(set)
        for key, units in self.kubelet.items():
            for unit in units:
                found[self.layout.card(unit)].add(self.resources[key])
        return [f"card {card} serves {sorted(names)}" for card, names in found.items() if len(names) > 1]

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
    kubelet, resources = _from_kubelets(
        cluster, sorted({pod["spec"]["nodeName"] for pod in running}), namespace
    )
    over = {key for pod in running for key in _init_containers(pod)}
    return Books(
        annotation=without(_from_annotations(running), over),
        kubelet=kubelet,
        resources=resources,
        environment=_from_environments(cluster, namespace),
        status=without(_from_status(cards, namespace), over),
        layout=read_layout(nodes),
        capacity={card["uuid"]: card["units"] for card in cards},
        allocated={card["uuid"]: card["allocatedUnits"] for card in cards},
    )


def _init_containers(pod: Json) -> Iterable[Key]:
    """Those that have ended in a running pod: neither the kubelet nor a process tells of them any more."""
    for each in pod["spec"].get("initContainers", ()):
        yield Key(pod["metadata"]["namespace"], pod["metadata"]["name"], each["name"])


def without(book: Book, keys: set[Key]) -> Book:
    return {key: share for key, share in book.items() if key not in keys}


def _from_annotations(pods: Sequence[Json]) -> Book:
    book: Book = {}
    for pod in pods:
        metadata = pod["metadata"]
        allocation = json.loads(metadata.get("annotations", {}).get("gpushare.io/allocation", "{}"))
        if allocation.get("uid") != metadata["uid"]:
            continue
        for name, shares in allocation.get("containers", {}).items():
            if share := Share.of(shares):
                book[Key(metadata["namespace"], metadata["name"], name)] = share
    return book


def _from_kubelets(
    cluster: LocalCluster, nodes: Iterable[str], namespace: str
) -> tuple[dict[Key, frozenset[Unit]], dict[Key, str]]:
    """Returns the units of each container, and what they are of."""
    book, resources = {}, {}
    for node in nodes:
        for pod in pod_resources(cluster, node).pod_resources:
            for container in pod.containers:
                units = {
                    unit
                    for each in container.devices
                    for unit in each.device_ids
                    if each.resource_name in RESOURCES
                }
                if units and pod.namespace == namespace:
                    key = Key(pod.namespace, pod.name, container.name)
                    book[key] = frozenset((node, unit) for unit in units)
                    resources[key] = next(
                        each.resource_name for each in container.devices if each.resource_name in RESOURCES
                    )
    return book, resources


def pod_resources(cluster: LocalCluster, node: str) -> api.ListPodResourcesResponse:
    """What the kubelet of ``node`` itself says, over its own socket."""
    with grpc.insecure_channel(f"unix:{cluster.node_path(node, SOCKET)}") as channel:
        call = channel.unary_unary(
            LIST,
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
            response_deserializer=api.ListPodResourcesResponse.FromString,
        )
        answer: api.ListPodResourcesResponse = call(
            api.ListPodResourcesRequest(), timeout=10, wait_for_ready=True
        )
        return answer


def _from_environments(cluster: LocalCluster, namespace: str) -> Book:
    records = [
        each for each in cluster.containers() if each.namespace == namespace and each.state == "running"
    ]
    return {
        Key(each.namespace, each.pod, each.container): Share(
            ",".join(sorted(each.env["GPUSHARE_CARD"].split(","))), int(each.env["GPUSHARE_UNITS"])
        )
        for each in records
        if "GPUSHARE_CARD" in each.env
    }


def _from_status(cards: Iterable[Json], namespace: str) -> Book:
    found: dict[Key, dict[str, int]] = defaultdict(dict)
    for card in cards:
        for pod in card.get("pods", ()):
            if pod["namespace"] == namespace:
                key = Key(pod["namespace"], pod["name"], pod["container"])
                found[key][card["uuid"]] = pod["units"]
    return {key: share for key, shares in found.items() if (share := Share.of(shares))}
