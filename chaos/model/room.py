"""Whether a waiting pod has room somewhere, so that it must not wait (pure).

Deliberately simple, and only for clear cases: one class of units, free healthy cards, nothing but cards in
the pod's way.
"""

from collections.abc import Iterable, Mapping

from gpushare_core.audit.records import ShareNodeRecord, StatusCard
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.text.json_object import Json

RESOURCES: Mapping[str, Mapping[str, ResourceClass]] = {
    "gpushare.io": {
        "gpushare.io/memory": ResourceClass.MEMORY,
        "gpushare.io/slice": ResourceClass.SLICE,
        "gpushare.io/card": ResourceClass.CARD,
    },
    "aliyun.com": {
        "aliyun.com/gpu-mem": ResourceClass.MEMORY,
        "gpushare.io/slice": ResourceClass.SLICE,
        "gpushare.io/card": ResourceClass.CARD,
    },
}
"""Dialect -> what its nodes serve, by the product's documentation."""
CHOOSY = frozenset({"affinity", "nodeSelector", "topologySpreadConstraints"})
"""A pod whose spec says where it may run, such as a DaemonSet's, is left out."""


def node_with_room(pod: Json, nodes: Iterable[tuple[Json, ShareNodeRecord]]) -> str:
    """Returns a node that surely has room for the pod, "" where none has."""
    asked = _asked(pod["spec"])
    if len(asked) != 1 or not CHOOSY.isdisjoint(pod["spec"]):
        return ""
    ((resource, amount),) = asked.items()
    for node, books in nodes:
        if _takes_pods(node, books) and _has_room(books, resource, amount):
            return books.name
    return ""


def _takes_pods(node: Json, books: ShareNodeRecord) -> bool:
    spec = node["spec"]
    return not (spec.get("unschedulable") or spec.get("taints") or books.deleting or books.problem)


def _asked(spec: Json) -> dict[str, int]:
    """Returns the requests of all containers together: at least what the pod needs at once."""
    asked: dict[str, int] = {}
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        for name, amount in _limits(container):
            asked[name] = asked.get(name, 0) + amount
    return asked


def _limits(container: Json) -> list[tuple[str, int]]:
    limits = container.get("resources", {}).get("limits", {})
    return [(name, int(amount)) for name, amount in limits.items() if "/" in name]


def _has_room(books: ShareNodeRecord, resource: str, amount: int) -> bool:
    served = RESOURCES.get(books.dialect, {}).get(resource)
    if served is None or books.unit is None:
        return False
    free = [_free(card, books, served) for card in books.cards if card.healthy and not card.cordoned]
    if served is ResourceClass.MEMORY:
        return any(units >= amount for units in free)
    return sum(units > 0 for units in free) >= amount


def _free(card: StatusCard, books: ShareNodeRecord, served: ResourceClass) -> int:
    """Returns how many units of that class are free on the card."""
    classes = {part.resource for part in books.unit.parts} if books.unit else set()
    if served not in classes:
        return 0
    if card.allocated == 0 and card.offers:
        return card.offers.get(served, 0)
    if len(classes) > 1 and card.lock is not served:
        return 0
    return card.units - card.allocated
