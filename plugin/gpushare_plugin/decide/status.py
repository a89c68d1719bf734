"""The status of a GPUShareNode: every card, and who has what on it."""

from collections.abc import Iterable, Sequence

from gpushare_core.api.conditions import Condition, merge_conditions
from gpushare_core.api.policy import MemoryTotals, UnitTotals
from gpushare_core.api.share_node import CardStatus, GPUShareNode, Health, NodeStatus, PodShare
from gpushare_core.placement.quantity import format_quantity
from gpushare_core.version import VERSION
from gpushare_plugin.decide.holdings import PodUnits
from gpushare_plugin.decide.layout import Layout, PlacedCard
from gpushare_plugin.decide.pods import Pod

Settled = Sequence[tuple[Pod, PodUnits]]
"""The pods that hold units, and what they hold."""


def node_status(
    node: GPUShareNode, layout: Layout | None, settled: Settled, conditions: list[Condition]
) -> NodeStatus:
    """What to write; equal to what is there already where nothing changed."""
    cards = [_card(placed, layout, settled) for placed in layout.cards] if layout else []
    return NodeStatus(
        observed_generation=node.metadata.generation,
        plugin_version=VERSION,
        memory_unit=layout.unit.text if layout else "",
        summary=" ".join(f"{card.allocated_units}/{card.units}" for card in cards),
        conditions=merge_conditions(node.status.conditions, conditions),
        units=_units(cards),
        memory=_memory(layout, cards),
        cards=cards,
    )


def _card(placed: PlacedCard, layout: Layout, settled: Settled) -> CardStatus:
    card = placed.card
    return CardStatus(
        index=card.index,
        uuid=card.uuid,
        model=card.model,
        memory=quantity_text(card.memory),
        units=placed.units,
        allocated_units=sum(held.cards.get(card.uuid, 0) for _, held in settled),
        used_memory=quantity_text(card.used, like=layout.unit.text),
        compute_score=card.compute_score,
        numa_node=card.numa_node,
        health=Health.HEALTHY if card.healthy else Health.UNHEALTHY,
        health_reason=card.reason,
        lock="",
        pods=sorted(_shares(card.uuid, settled), key=_by_name),
    )


def _shares(uuid: str, settled: Settled) -> Iterable[PodShare]:
    for pod, held in settled:
        for container, shares in held.containers.items():
            if uuid in shares:
                yield PodShare(
                    namespace=pod.name.namespace,
                    name=pod.name.name,
                    uid=pod.uid,
                    container=container,
                    units=shares[uuid],
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


def quantity_text(amount: int, like: str = "1Gi") -> str:
    """``amount`` bytes exactly, in whichever family of suffixes is shorter; that of ``like`` on ties."""
    other = "1M" if like.endswith("i") else "1Mi"
    return min(format_quantity(amount, like=like), format_quantity(amount, like=other), key=len)
