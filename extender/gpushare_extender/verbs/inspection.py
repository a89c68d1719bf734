"""The response to ``GET /gpushare/inspect``."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import msgspec

from gpushare_core.audit.difference import Difference
from gpushare_core.placement.card_choice import Card, ChoiceReason
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger

Differing = Mapping[str, Sequence[Difference]]
"""Node -> its differences."""
NOTHING_DIFFERS: Differing = MappingProxyType({})
Choices = Mapping[str, Mapping[str, ChoiceReason]]
"""Pod UID -> card UUID -> why the pod got this card."""
NO_CHOICES: Choices = MappingProxyType({})


class Units(msgspec.Struct):
    """Of all cards, healthy or not. ``allocated`` includes the units reserved for binds under way."""

    total: int
    allocated: int


class PodView(msgspec.Struct, omit_defaults=True):
    """The units of one pod on one card. ``reserved``: its bind is under way. ``reason``: why the pod got this
    card, if this extender has bound the pod and still knows."""

    namespace: str
    name: str
    uid: str
    units: int
    reserved: bool
    reason: str = ""


class CardView(msgspec.Struct):
    """``allocated`` includes ``reserved``. ``lock``: the class that the card serves alone at present."""

    index: int
    uuid: str
    units: int
    allocated: int
    reserved: int
    healthy: bool
    cordoned: bool
    lock: str
    pods: list[PodView]


class NodeView(msgspec.Struct):
    """``refusal`` says why the node takes no pods; empty if it does. ``differences``: sentences about records
    that have differed for some seconds."""

    name: str
    unit: str
    strategy: str
    refusal: str
    units: Units
    cards: list[CardView]
    differences: list[str] = []


class Inspection(msgspec.Struct):
    nodes: list[NodeView]


def inspect_all(
    ledger: Ledger, differing: Differing = NOTHING_DIFFERS, choices: Choices = NO_CHOICES
) -> Inspection:
    """Returns every node that shares cards, sorted by name."""
    views = (inspect_node(ledger, name, differing.get(name, ()), choices) for name in ledger.node_names())
    return Inspection([view for view in views if view])


def inspect_node(
    ledger: Ledger, name: str, differences: Sequence[Difference] = (), choices: Choices = NO_CHOICES
) -> NodeView | None:
    """Returns None when node ``name`` does not share cards."""
    node = ledger.node(name)
    if node is None or node.share_node is None:
        return None
    cards = list(node.cards())
    return NodeView(
        name=name,
        unit=node.share_node.unit,
        strategy=node.share_node.strategy.value,
        refusal=node.closed_reason,
        units=Units(sum(card.units for card in cards), sum(card.allocated for card in cards)),
        cards=[_card(ledger, node, card, choices) for card in cards],
        differences=[difference.sentence for difference in differences],
    )


def _card(ledger: Ledger, node: NodeLedger, card: Card, choices: Choices) -> CardView:
    pods = _pods(ledger, node, card.uuid, choices)
    reported = node.share_node.card(card.uuid) if node.share_node else None
    return CardView(
        index=card.index,
        uuid=card.uuid,
        units=card.units,
        allocated=card.allocated,
        reserved=sum(pod.units for pod in pods if pod.reserved),
        healthy=reported is not None and reported.healthy,
        cordoned=reported is not None and reported.cordoned,
        lock=node.lock_of(card.uuid) or "",
        pods=pods,
    )


def _pods(ledger: Ledger, node: NodeLedger, card: str, choices: Choices) -> list[PodView]:
    return [
        PodView(
            share.namespace,
            share.name,
            share.uid,
            share.units,
            share.uid in ledger.reservations,
            choices.get(share.uid, {}).get(card, ""),
        )
        for share in sorted(node.shares(card))
        if share.units
    ]
