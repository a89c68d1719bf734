"""Pods, budgets and nodes for the tests of preemption, short to write."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.samples.extender import holder, reference, share_node

from gpushare_core.placement.modes.sharing_mode import NodeMode
from gpushare_core.placement.modes.table import MEMORY, NODE_MODES
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.share_node import ShareNode
from gpushare_core.scheduling.preemption.bound_pods import BoundPod
from gpushare_core.scheduling.preemption.disruption_budgets import Budget, BudgetList
from gpushare_core.text.json_object import Json


def bound(
    uid: str, priority: int = 0, *, started: float = 0.0, labels: Mapping[str, str] | None = None
) -> BoundPod:
    return BoundPod(pod=reference(uid, uid=uid), priority=priority, started=started, labels=labels or {})


def ledger_with(*units: int, mode: NodeMode = MEMORY, unit: str = "1Gi", **holders: Any) -> Ledger:
    """Node n1 with cards of ``units``; ``a={"c0": 4}`` stands for 4 units that the pod a has of card 0."""
    ledger = Ledger()
    ledger.set_share_node(share_node("n1", *units, mode=mode, unit=unit))
    for uid, cards in holders.items():
        ledger.set_pod(PodUpdate(uid, holder(uid, unit=unit, **cards)))
    return ledger


def mixed_node(*units: int) -> ShareNode:
    """Node n1 in mode Mixed, two slices to a card."""
    node = share_node("n1", *units, mode=NODE_MODES["Mixed"], unit="1Gi, 1/2 card, 1 card")
    offers = {ResourceClass.SLICE: 2, ResourceClass.CARD: 1}
    cards = (replace(card, offers={ResourceClass.MEMORY: card.units, **offers}) for card in node.cards)
    return replace(node, cards=tuple(cards))


def budget_json(
    name: str = "budget", *, allowed: int = 0, namespace: str = "default", **selector: str
) -> Json:
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": {"matchLabels": selector}},
        "status": {"disruptionsAllowed": allowed},
    }


def budgets(*bodies: Json) -> list[Budget]:
    return msgspec.convert({"items": list(bodies)}, BudgetList).items
