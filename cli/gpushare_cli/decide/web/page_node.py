"""A node as the page draws it: the fields of ``inspect`` that people see there, and the groups it is in."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from gpushare_cli.decide.inspection.shared_card import CardHolder, HolderState, SharedCard
from gpushare_cli.decide.inspection.shared_node import SharedNode


class PageCardState(StrEnum):
    """The first that applies."""

    SICK = "Sick"
    CORDONED = "Cordoned"
    CLOSED = "Closed"
    """Its node takes no new pods."""
    OPEN = "Open"


class PageHolder(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    namespace: str
    name: str
    units: int
    asked_bytes: int = 0
    used_bytes: int | None = None
    """None: not known."""
    state: str = HolderState.STARTED
    exceeds: bool = False


class PageCard(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    index: int
    uuid: str
    state: str = PageCardState.OPEN
    reason: str = ""
    """Why it is not open."""
    serves: str = ""
    """The class that it serves: Memory, Slices or Exclusive; Mixed while it is open to all."""
    model: str = ""
    unit: str = ""
    units: int = 0
    held_units: int = 0
    free_units: int = 0
    memory_bytes: int = 0
    held_bytes: int = 0
    used_bytes: int | None = None
    """None: not known."""
    has_problem: bool = False
    holders: Sequence[PageHolder] = ()


class PageNode(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    name: str
    groups: Mapping[str, str] = {}
    """Label -> value, of the labels by which the page can group nodes."""
    policy: str = ""
    closed: str = ""
    """Why it takes no new pods; empty: it does."""
    cards: Sequence[PageCard] = ()


def page_node(node: SharedNode, groups: Mapping[str, str]) -> PageNode:
    return PageNode(
        name=node.name,
        groups=groups,
        policy=node.policy,
        closed="" if node.takes_pods else node.closed_reason,
        cards=[_card(card, node) for card in node.cards],
    )


def _card(card: SharedCard, node: SharedNode) -> PageCard:
    state, reason = _state(card, node)
    return PageCard(
        index=card.index,
        uuid=card.uuid,
        state=state,
        reason=reason,
        serves=card.serves or node.mode,
        model=card.model,
        unit=card.unit,
        units=card.units,
        held_units=card.held_units,
        free_units=card.free_units,
        memory_bytes=card.memory_bytes,
        held_bytes=card.held_bytes,
        used_bytes=card.used_bytes,
        has_problem=card.has_problem,
        holders=[*map(_holder, card.holders)],
    )


def _state(card: SharedCard, node: SharedNode) -> tuple[PageCardState, str]:
    if not card.healthy:
        return PageCardState.SICK, (card.fault.message if card.fault else "") or card.health_reason
    if card.cordoned:
        return PageCardState.CORDONED, card.cordon_reason
    if not node.takes_pods:
        return PageCardState.CLOSED, node.closed_reason
    return PageCardState.OPEN, ""


def _holder(holder: CardHolder) -> PageHolder:
    return PageHolder(
        namespace=holder.namespace,
        name=holder.name,
        units=holder.units,
        asked_bytes=holder.asked_bytes,
        used_bytes=holder.used_bytes,
        state=holder.state,
        exceeds=holder.exceeds,
    )
