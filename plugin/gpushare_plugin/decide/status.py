"""The status of a GPUShareNode: every card, and who has what on it."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from gpushare_core.api.conditions import ConditionState, dated_conditions
from gpushare_core.api.policy import MemoryTotals, UnitTotals
from gpushare_core.api.share_node import CardStatus, GPUShareNode, Health, NodeStatus, PodShare
from gpushare_core.placement.quantity import format_memory
from gpushare_core.version import VERSION
from gpushare_plugin.decide.allocations import PodAllocation
from gpushare_plugin.decide.layout import Layout, PlacedCard


def node_status(
    share_node: GPUShareNode,
    layout: Layout | None,
    allocations: Sequence[PodAllocation],
    conditions: Iterable[ConditionState],
    *,
    now: datetime,
) -> NodeStatus:
    """Returns what to write; equal to what is there already where nothing changed."""
    cards = [_card(placed, layout, allocations) for placed in layout.cards] if layout else []
    return NodeStatus(
        observed_generation=share_node.metadata.generation,
        plugin_version=VERSION,
        memory_unit=layout.unit.text if layout else "",
        summary=" ".join(f"{card.allocated_units}/{card.units}" for card in cards),
        conditions=dated_conditions(
            conditions,
            before=share_node.status.conditions,
            generation=share_node.metadata.generation,
            now=now,
        ),
        units=_units(cards),
        memory=_memory(layout, cards),
        cards=cards,
    )


def _card(placed: PlacedCard, layout: Layout, allocations: Sequence[PodAllocation]) -> CardStatus:
    card = placed.card
    return CardStatus(
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        memory=quantity_text(card.memory),
        units=placed.units,
        allocated_units=sum(allocation.cards.get(card.uuid, 0) for allocation in allocations),
        used_memory=quantity_text(card.used, like=layout.unit.text),
        compute_score=card.compute_score,
        numa_node=card.numa_node,
        health=Health.HEALTHY if card.healthy else Health.UNHEALTHY,
        health_reason=card.reason,
        lock="",
        pods=sorted(_shares(card.uuid, allocations), key=_by_name),
    )


def _shares(uuid: str, allocations: Sequence[PodAllocation]) -> Iterable[PodShare]:
    for allocation in allocations:
        for container, cards in allocation.containers.items():
            if uuid in cards:
                yield PodShare(
                    namespace=allocation.pod.name.namespace,
                    name=allocation.pod.name.name,
                    uid=allocation.pod.uid,
                    container=container,
                    units=cards[uuid],
                )


def _by_name(share: PodShare) -> tuple[str, str, str]:
    return (share.namespace, share.name, share.container)


def _units(cards: list[CardStatus]) -> UnitTotals:
    return UnitTotals(
        total=sum(card.units for card in cards), allocated=sum(card.allocated_units for card in cards)
    )


def _memory(layout: Layout | None, cards: list[CardStatus]) -> MemoryTotals:
    if layout is None:
        return MemoryTotals()
    size, text = layout.unit.size, layout.unit.text
    totals = _units(cards)
    return MemoryTotals(
        total=quantity_text(totals.total * size, like=text),
        allocated=quantity_text(totals.allocated * size, like=text),
        used=quantity_text(sum(placed.card.used for placed in layout.cards), like=text),
    )


def quantity_text(size: int, like: str = "1Gi") -> str:
    """Returns ``size`` bytes exactly, in the shorter family of suffixes; in that of ``like`` on ties."""
    other = "1M" if like.endswith("i") else "1Mi"
    return min(format_memory(size, like=like), format_memory(size, like=other), key=len)
