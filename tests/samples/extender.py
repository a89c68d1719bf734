"""Inventories, holdings and pods for the extender's tests, short to write."""

import json
from typing import Any

from gpushare_core.placement.cards import Strategy
from gpushare_extender.ledger.holder import Holding, PodNews
from gpushare_extender.ledger.share_node import CardInventory, NodeInventory

Json = dict[str, Any]
GI = 2**30
ANNOTATION = "gpushare.io/allocation"
RESOURCE = "gpushare.io/memory"


def inventory(
    name: str = "n1",
    *units: int,
    sick: tuple[int, ...] = (),
    strategy: Strategy = Strategy.BINPACK,
    refusal: str = "",
    unit: str = "1Gi",
    unit_size: int = GI,
) -> NodeInventory:
    """A node with a card for each of ``units``, named ``<node>-<index>``; two of 16 if none is given."""
    cards = tuple(
        CardInventory(f"{name}-{index}", index, size, index not in sick)
        for index, size in enumerate(units or (16, 16))
    )
    return NodeInventory(
        name=name, cards=cards, unit=unit, unit_size=unit_size, strategy=strategy, refusal=refusal
    )


def holding(uid: str, *, node: str = "n1", unit_size: int = GI, **cards: int) -> Holding:
    """``c0=4`` stands for 4 units of the node's card 0."""
    shares = tuple((f"{node}-{card.removeprefix('c')}", units) for card, units in cards.items())
    return Holding(uid=uid, namespace="default", name=uid, node=node, cards=shares, unit_size=unit_size)


def news(uid: str, *, node: str = "n1", unit_size: int = GI, **cards: int) -> PodNews:
    return PodNews(uid, holding(uid, node=node, unit_size=unit_size, **cards))


def share_node(name: str = "n1", *, cards: int = 2, units: int = 16) -> Json:
    """A GPUShareNode as its plugin leaves it."""
    return {
        "metadata": {"name": name},
        "spec": {"mode": "Memory", "memoryUnit": "1Gi", "dialect": "gpushare.io", "strategy": "Binpack"},
        "status": {
            "memoryUnit": "1Gi",
            "conditions": [{"type": "Registered", "status": "True", "message": ""}],
            "cards": [
                {"index": index, "uuid": f"{name}-{index}", "units": units, "health": "Healthy"}
                for index in range(cards)
            ],
        },
    }


def annotation(*, node: str = "n1", unit: str = "1Gi", **cards: int) -> str:
    shares = {f"{node}-{card.removeprefix('c')}": units for card, units in cards.items()}
    whole = {"node": node, "at": "2026-11-21T10:00:00Z", "unit": unit, "containers": {"main": shares}}
    return json.dumps({**whole, "cards": shares})


def container(name: str = "main", units: int | None = None) -> Json:
    limits = {"cpu": "1", "memory": "1Gi", **({} if units is None else {RESOURCE: str(units)})}
    return {"name": name, "resources": {"limits": limits, "requests": {"cpu": "500m", "memory": "256Mi"}}}


def pod(
    name: str = "a",
    *,
    uid: str = "",
    units: int | None = 4,
    node: str = "",
    annotations: dict[str, str] | None = None,
) -> Json:
    """A pod of one container; unbound unless ``node`` is given."""
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": uid or f"uid-{name}",
            "annotations": annotations or {},
        },
        "spec": {"containers": [container(units=units)], **({"nodeName": node} if node else {})},
        "status": {"phase": "Running" if node else "Pending"},
    }
