"""Metrics of a node and its cards. Pure."""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import nlargest

from gpushare_core.api.enums import Health
from gpushare_core.api.share_node import NodeSpec, NodeStatus
from gpushare_core.placement.modes.table import NODE_MODES, class_of_lock
from gpushare_core.process.metrics import Gauge, Sample
from gpushare_plugin.decide.isolation.node_isolation import Findings
from gpushare_plugin.decide.use.container_use import MeasuredUse
from gpushare_plugin.devices.card import PhysicalCard

ALLOCATED, FREE = "allocated", "free"

CARDS = Gauge("gpushare_cards", "Cards of the node.", ("node", "health"))
UNITS = Gauge("gpushare_units", "Units of the node, as its GPUShareNode says.", ("node", "resource", "state"))
CONDITION = Gauge(
    "gpushare_node_condition", "Conditions of the GPUShareNode: 1 True, 0 False.", ("node", "type")
)
CARD_INFO = Gauge(
    "gpushare_card_info", "Always 1; the labels describe the card.", ("node", "card", "index", "model")
)
CARD_HEALTHY = Gauge(
    "gpushare_card_healthy", "1 if nothing is wrong with the card, else 0.", ("node", "card")
)
CARD_MEMORY = Gauge("gpushare_card_memory_bytes", "Memory of the card.", ("node", "card"))
CARD_USED = Gauge("gpushare_card_memory_used_bytes", "Memory in use on the card.", ("node", "card"))
CONTAINER_LABELS = ("node", "card", "namespace", "pod", "container")
CONTAINER_USED = Gauge(
    "gpushare_container_memory_used_bytes", "Memory of the card that the container uses.", CONTAINER_LABELS
)
CONTAINER_REQUESTED = Gauge(
    "gpushare_container_memory_requested_bytes",
    "Memory of the card that the container asked for.",
    CONTAINER_LABELS,
)
CONTAINER_LIMIT = Gauge(
    "gpushare_container_memory_limit_bytes",
    "Memory of the card to which isolation limits the container.",
    CONTAINER_LABELS,
)
ISOLATION_IN_FORCE = Gauge(
    "gpushare_isolation_in_force",
    "1 if the container is held to its memory limit, 0 if it is not.",
    CONTAINER_LABELS,
)
MAX_CONTAINERS = 256
"""Of a node, those that use most. A kubelet takes 110 pods by default: two containers of each are fewer."""
CARD_UNITS = Gauge(
    "gpushare_card_units", "Units of the card, as the GPUShareNode says.", ("node", "card", "state")
)
NAMESPACE_UNITS = Gauge(
    "gpushare_namespace_units", "Units that the pods of a namespace hold.", ("node", "resource", "namespace")
)
MAX_NAMESPACES = 256
"""Of a node, those that hold most."""
CARD_PODS = Gauge("gpushare_card_pods", "Pods that have units of the card.", ("node", "card"))

NODE_GAUGES = (
    CARDS,
    UNITS,
    CONDITION,
    CARD_INFO,
    CARD_HEALTHY,
    CARD_MEMORY,
    CARD_USED,
    CONTAINER_USED,
    CONTAINER_REQUESTED,
    CONTAINER_LIMIT,
    ISOLATION_IN_FORCE,
    CARD_UNITS,
    CARD_PODS,
    NAMESPACE_UNITS,
)


def card_figures(node: str, cards: Sequence[PhysicalCard]) -> Iterator[Sample]:
    """Yields the reading of the source of devices, also of cards that are not shared."""
    healthy = sum(card.healthy for card in cards)
    yield CARDS.at(healthy, node, Health.HEALTHY.value)
    yield CARDS.at(len(cards) - healthy, node, Health.UNHEALTHY.value)
    for card in cards:
        yield CARD_INFO.at(1, node, card.uuid, str(card.index), card.model)
        yield CARD_HEALTHY.at(card.healthy, node, card.uuid)
        yield CARD_MEMORY.at(card.memory, node, card.uuid)


def use_figures(node: str, measured: MeasuredUse) -> Iterator[Sample]:
    """Yields the memory in use; of containers only where that is known."""
    for card, used in measured.cards.items():
        yield CARD_USED.at(used, node, card)
    if measured.problem:
        return
    held = ((measured.containers.get(key, 0), key) for key in measured.requested)
    for used, key in nlargest(MAX_CONTAINERS, held):
        labels = (node, key.card, key.pod.namespace, key.pod.name, key.container)
        yield CONTAINER_USED.at(used, *labels)
        yield CONTAINER_REQUESTED.at(measured.requested[key], *labels)


def isolation_figures(node: str, found: Findings) -> Iterator[Sample]:
    """Yields what is known of containers that were given isolation."""
    for isolated, finding in nlargest(MAX_CONTAINERS, found, key=lambda pair: pair[0].memory):
        share = isolated.share
        labels = (node, share.card, share.pod.namespace, share.pod.name, share.container)
        if finding.limit is not None:
            yield CONTAINER_LIMIT.at(finding.limit, *labels)
        if finding.in_force is not None:
            yield ISOLATION_IN_FORCE.at(finding.in_force, *labels)


def status_figures(node: str, spec: NodeSpec, status: NodeStatus) -> Iterator[Sample]:
    for condition in status.conditions:
        if condition.status in ("True", "False"):
            yield CONDITION.at(condition.status == "True", node, condition.type)
    for resource, total, allocated in _totals(spec, status):
        yield UNITS.at(allocated, node, resource, ALLOCATED)
        yield UNITS.at(max(0, total - allocated), node, resource, FREE)
    for card in status.cards:
        yield CARD_UNITS.at(card.allocated_units, node, card.uuid, ALLOCATED)
        yield CARD_UNITS.at(max(0, card.units - card.allocated_units), node, card.uuid, FREE)
        yield CARD_PODS.at(len({share.uid for share in card.pods}), node, card.uuid)
    held = _held_by_namespace(spec, status)
    for (resource, namespace), units in nlargest(MAX_NAMESPACES, held.items(), key=lambda item: item[1]):
        yield NAMESPACE_UNITS.at(units, node, resource, namespace)


def _totals(spec: NodeSpec, status: NodeStatus) -> Iterator[tuple[str, int, int]]:
    """Yields resource, total and allocated, in mode Mixed of each resource."""
    if status.resources:
        yield from ((resource.resource, resource.total, resource.allocated) for resource in status.resources)
    elif spec.mode in NODE_MODES:
        served = NODE_MODES[spec.mode].served[0]
        yield (served.resource.value, status.units.total, status.units.allocated)


def _held_by_namespace(spec: NodeSpec, status: NodeStatus) -> Counter[tuple[str, str]]:
    """Returns resource and namespace -> units; in mode Mixed the resource is the one of the card's lock."""
    served = NODE_MODES[spec.mode].served if spec.mode in NODE_MODES else ()
    usual = served[0].resource.value if served else ""
    held: Counter[tuple[str, str]] = Counter()
    for card in status.cards:
        locked = class_of_lock(card.lock)
        for share in card.pods:
            held[locked.value if locked else usual, share.namespace] += share.units
    return held
