"""What a node can share, read from its GPUShareNode."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import msgspec

from gpushare_core.api.names import REGISTERED
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.modes import MEMORY, MODES, mode_serving
from gpushare_core.placement.sharing_mode import SharingMode
from gpushare_core.placement.units import Meaning, parse_unit


class ReportedHolder(NamedTuple):
    """A pod that has units of one card by the kubelet's books, known to the API or not."""

    uid: str
    namespace: str
    name: str
    units: int
    """The sum over its containers: more than it holds where an init container lends to the next ones."""
    least: int
    """The most that one of its containers has."""


@dataclass(frozen=True, slots=True)
class ShareNodeCard:
    """One card as the node's plugin reports it."""

    uuid: str
    index: int
    units: int
    healthy: bool
    allocated: int = 0
    """Units that the kubelet has given out."""
    holders: tuple[ReportedHolder, ...] = ()
    numa_node: int = -1
    """Negative when unknown."""

    def given(self, booked: Mapping[str, int]) -> dict[str, int]:
        """Returns what the kubelet has given to each pod, by UID.

        ``booked`` says what the pods have by our own books: that tells how much a pod with lending init
        containers holds as a whole.
        """
        lends = sum(holder.units for holder in self.holders) > self.allocated
        return {
            holder.uid: holder.least if lends and holder.uid in booked else holder.units
            for holder in self.holders
        }

    def units_in_use(self, booked: Mapping[str, int]) -> int:
        """Returns the units that nobody else may get: booked, or given out by the kubelet.

        A pod that is in both counts once, with the larger figure; units whose holder is not named count, too.
        However little is booked, it is never less than what the kubelet has given out. Of the pods that are
        not booked the total tells the most that they can have, whatever their init containers lend.
        """
        given = self.given(booked)
        both = [holder for holder in self.holders if holder.uid in booked]
        total = max(self.allocated, sum(holder.least for holder in self.holders))
        named = sum(holder.units for holder in self.holders)
        others = max(total, named) - sum(holder.units for holder in both)
        most = total - sum(holder.least for holder in both)
        by_pod = sum(max(booked[holder.uid], given[holder.uid]) for holder in both)
        not_given = sum(units for uid, units in booked.items() if uid not in given)
        return max(by_pod + min(others, most), total) + not_given


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareNode:
    """The GPUShareNode of one node, as far as placement needs it."""

    name: str
    cards: tuple[ShareNodeCard, ...] = ()
    """In order of index."""
    unit: str = ""
    """The unit in force, as written."""
    unit_meaning: Meaning | None = None
    """None when the unit is unknown."""
    mode: SharingMode = MEMORY
    strategy: Strategy = Strategy.BINPACK
    compute_score: int = 0
    """Of the node's fastest card."""
    closed_reason: str = ""
    """For people: why the node takes no pods of ours. Empty when it does."""

    def card(self, uuid: str) -> ShareNodeCard | None:
        return next((card for card in self.cards if card.uuid == uuid), None)


class _Metadata(msgspec.Struct):
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


class _PodShare(msgspec.Struct):
    uid: str
    units: int
    namespace: str = ""
    name: str = ""


class _Card(msgspec.Struct):
    uuid: str
    units: int
    index: int = 0
    health: str = ""
    allocated: int = msgspec.field(name="allocatedUnits", default=0)
    pods: list[_PodShare] | None = None
    compute_score: int = msgspec.field(name="computeScore", default=0)
    numa_node: int = msgspec.field(name="numaNode", default=-1)


class _Status(msgspec.Struct):
    unit: str = msgspec.field(name="memoryUnit", default="")
    conditions: list[_Condition] | None = None
    cards: list[_Card] | None = None


class _ShareNode(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status | None = None


class _Named(msgspec.Struct):
    metadata: _Metadata


_DECODER = msgspec.json.Decoder(_ShareNode)
_NAME_DECODER = msgspec.json.Decoder(_Named)


def read_share_node(raw: msgspec.Raw | bytes) -> ShareNode:
    """Returns what the JSON of a GPUShareNode says; a node that cannot be read takes no pods.

    Raises:
        msgspec.DecodeError: not even the name can be read.
    """
    try:
        node = _DECODER.decode(raw)
    except msgspec.DecodeError as error:
        name = sys.intern(_NAME_DECODER.decode(raw).metadata.name)
        return ShareNode(name=name, closed_reason=f"its GPUShareNode cannot be read: {error}")
    return _share_node(node, node.status or _Status())


@lru_cache(maxsize=256)
def unit_meaning(unit: str) -> Meaning | None:
    """Returns what ``unit`` means, or None when it cannot be read. A whole cluster has few different ones."""
    try:
        return parse_unit(unit).meaning
    except ValueError:
        return None


def _share_node(node: _ShareNode, status: _Status) -> ShareNode:
    """The mode is the one in force: another one than in the spec while pods keep that from being applied."""
    cards, meaning = status.cards or [], unit_meaning(status.unit)
    return ShareNode(
        name=sys.intern(node.metadata.name),
        cards=tuple(_card(card) for card in sorted(cards, key=lambda card: card.index)),
        unit=sys.intern(status.unit),
        unit_meaning=meaning,
        mode=mode_serving(meaning[0]) if meaning else MEMORY,
        strategy=_strategy(node.spec.strategy),
        compute_score=max((card.compute_score for card in cards), default=0),
        closed_reason=_closed_reason(node, status),
    )


def _card(card: _Card) -> ShareNodeCard:
    return ShareNodeCard(
        sys.intern(card.uuid),
        card.index,
        card.units,
        card.health == "Healthy",
        card.allocated,
        tuple(_holders(card.pods or ())),
        card.numa_node,
    )


def _holders(shares: Iterable[_PodShare]) -> Iterable[ReportedHolder]:
    """Returns one for each pod. Interns what the pod's annotation brings as well."""
    by_pod: dict[str, list[_PodShare]] = {}
    for share in shares:
        by_pod.setdefault(share.uid, []).append(share)
    for uid, containers in by_pod.items():
        units = [share.units for share in containers]
        first = containers[0]
        yield ReportedHolder(
            sys.intern(uid), sys.intern(first.namespace), sys.intern(first.name), sum(units), max(units)
        )


def _strategy(name: str) -> Strategy:
    return next((strategy for strategy in Strategy if strategy == name), Strategy.BINPACK)


def _closed_reason(node: _ShareNode, status: _Status) -> str:
    """Returns the first reason, in the order in which an administrator would want to know, or nothing."""
    if node.metadata.deleting:
        return "node is being taken out of GPU sharing"
    if node.spec.mode not in MODES:
        return f"GPU sharing mode {node.spec.mode or 'unknown'} is not served, only {', '.join(MODES)}"
    if node.spec.dialect not in DIALECTS:
        return f"GPU sharing dialect {node.spec.dialect} is not served, only {', '.join(DIALECTS)}"
    return _not_registered(status.conditions or ()) or _no_healthy_card(status.cards or ())


def _not_registered(conditions: Iterable[_Condition]) -> str:
    registered = next((condition for condition in conditions if condition.type == REGISTERED), None)
    if registered is not None and registered.status == "True":
        return ""
    reason = "GPU cards are not registered with the kubelet yet"
    return f"{reason}: {registered.message}" if registered is not None and registered.message else reason


def _no_healthy_card(cards: Iterable[_Card]) -> str:
    return "" if any(card.health == "Healthy" for card in cards) else "node has no healthy GPU card"
