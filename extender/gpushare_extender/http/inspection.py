"""The books as ``GET /gpushare/inspect`` shows them."""

from collections.abc import Iterable

import msgspec

from gpushare_core.placement.cards import Card
from gpushare_extender.ledger.holder import Holding
from gpushare_extender.ledger.ledger import Ledger
from gpushare_extender.ledger.node import NodeBooks


class Units(msgspec.Struct):
    """Of healthy and unhealthy cards; ``allocated`` includes what is reserved for binds under way."""

    total: int
    allocated: int


class PodView(msgspec.Struct):
    """What one pod holds of one card. ``reserved``: its bind is under way."""

    namespace: str
    name: str
    uid: str
    units: int
    reserved: bool


class CardView(msgspec.Struct):
    """``allocated`` includes ``reserved``."""

    index: int
    uuid: str
    units: int
    allocated: int
    reserved: int
    healthy: bool
    pods: list[PodView]


class NodeView(msgspec.Struct):
    """``refusal`` says why the node takes no pods; empty if it does."""

    name: str
    unit: str
    strategy: str
    refusal: str
    units: Units
    cards: list[CardView]


class Inspection(msgspec.Struct):
    nodes: list[NodeView]


def inspect_all(ledger: Ledger) -> Inspection:
    views = (inspect_node(ledger, name) for name in ledger.node_names())
    return Inspection([view for view in views if view])


def inspect_node(ledger: Ledger, name: str) -> NodeView | None:
    """None when ``name`` does not share cards."""
    books = ledger.node(name)
    if books is None or books.inventory is None:
        return None
    cards = list(books.cards())
    return NodeView(
        name=name,
        unit=books.inventory.unit,
        strategy=books.inventory.strategy.value,
        refusal=books.inventory.refusal,
        units=Units(sum(card.units for card in cards), sum(card.allocated for card in cards)),
        cards=[_card(ledger, books, card) for card in cards],
    )


def _card(ledger: Ledger, books: NodeBooks, card: Card) -> CardView:
    pods = _pods(ledger, books, card.uuid)
    return CardView(
        index=card.index,
        uuid=card.uuid,
        units=card.units,
        allocated=card.allocated,
        reserved=sum(pod.units for pod in pods if pod.reserved),
        healthy=card.healthy,
        pods=pods,
    )


def _pods(ledger: Ledger, books: NodeBooks, card: str) -> list[PodView]:
    shares = ((holding, books.units_in(holding, card)) for holding in _in_order(books.holdings.values()))
    return [
        PodView(holding.namespace, holding.name, holding.uid, units, ledger.is_reserved(holding.uid))
        for holding, units in shares
        if units
    ]


def _in_order(holdings: Iterable[Holding]) -> list[Holding]:
    return sorted(holdings, key=lambda holding: (holding.namespace, holding.name))
