"""What a node can share, read from its GPUShareNode."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from gpushare_core.api.names import REGISTERED
from gpushare_core.books.dialects import DIALECTS, GPUSHARE
from gpushare_core.placement.cards import Strategy
from gpushare_core.placement.quantity import parse_quantity

SERVED_MODE = "Memory"


@dataclass(frozen=True, slots=True)
class CardInventory:
    """One card as the node's plugin reports it."""

    uuid: str
    index: int
    units: int
    healthy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeInventory:
    """The cards of one node. ``refusal`` says, for people, why it takes no pods of ours; empty if it does."""

    name: str
    cards: tuple[CardInventory, ...] = ()
    unit: str = ""
    """The unit in force, as written."""
    unit_size: int = 0
    """Bytes; 0 when the unit is unknown."""
    strategy: Strategy = Strategy.BINPACK
    compute_score: int = 0
    """Of its fastest card."""
    refusal: str = ""


class _Meta(msgspec.Struct):
    name: str
    deleting: str | None = msgspec.field(name="deletionTimestamp", default=None)


class _Spec(msgspec.Struct):
    mode: str = ""
    dialect: str = GPUSHARE.name
    strategy: str = ""


class _Condition(msgspec.Struct):
    type: str
    status: str = ""
    message: str = ""


class _Card(msgspec.Struct):
    uuid: str
    units: int
    index: int = 0
    health: str = ""
    compute_score: int = msgspec.field(name="computeScore", default=0)


class _Status(msgspec.Struct):
    unit: str = msgspec.field(name="memoryUnit", default="")
    conditions: list[_Condition] | None = None
    cards: list[_Card] | None = None


class _ShareNode(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None


class _Named(msgspec.Struct):
    metadata: _Meta


_DECODER = msgspec.json.Decoder(_ShareNode)
_NAME_DECODER = msgspec.json.Decoder(_Named)


def read_inventory(raw: msgspec.Raw | bytes) -> NodeInventory:
    """The inventory that the JSON of a GPUShareNode tells of; one that cannot be read takes no pods.

    Raises:
        msgspec.DecodeError: not even its name can be read.
    """
    try:
        node = _DECODER.decode(raw)
    except msgspec.DecodeError as error:
        name = sys.intern(_NAME_DECODER.decode(raw).metadata.name)
        return NodeInventory(name=name, refusal=f"its GPUShareNode cannot be read: {error}")
    return _inventory(node, node.status or _Status())


def _inventory(node: _ShareNode, status: _Status) -> NodeInventory:
    return NodeInventory(
        name=sys.intern(node.metadata.name),
        cards=tuple(_card(card) for card in sorted(status.cards or (), key=lambda card: card.index)),
        unit=sys.intern(status.unit),
        unit_size=unit_size(status.unit),
        strategy=_strategy(node.spec.strategy),
        compute_score=max((card.compute_score for card in status.cards or ()), default=0),
        refusal=_refusal(node, status),
    )


def _card(card: _Card) -> CardInventory:
    return CardInventory(sys.intern(card.uuid), card.index, card.units, card.health == "Healthy")


def _strategy(name: str) -> Strategy:
    return next((strategy for strategy in Strategy if strategy == name), Strategy.BINPACK)


def unit_size(unit: str) -> int:
    """Bytes of one ``unit``; 0 when it says nothing readable."""
    try:
        return parse_quantity(unit)
    except ValueError:
        return 0


def _refusal(node: _ShareNode, status: _Status) -> str:
    """The first reason, in the order in which an administrator would want to know."""
    if node.metadata.deleting:
        return "node is being taken out of GPU sharing"
    if node.spec.mode != SERVED_MODE:
        return f"GPU sharing mode {node.spec.mode or 'unknown'} is not served, only {SERVED_MODE}"
    if node.spec.dialect not in DIALECTS:
        return f"GPU sharing dialect {node.spec.dialect} is not served, only {', '.join(DIALECTS)}"
    return _unregistered(status.conditions or ()) or _cardless(status.cards or ())


def _unregistered(conditions: Iterable[_Condition]) -> str:
    registered = next((each for each in conditions if each.type == REGISTERED), None)
    if registered is not None and registered.status == "True":
        return ""
    told = registered.message if registered is not None else ""
    return f"GPU cards are not registered with the kubelet yet{f': {told}' if told else ''}"


def _cardless(cards: Iterable[_Card]) -> str:
    return "" if any(card.health == "Healthy" for card in cards) else "node has no healthy GPU card"
