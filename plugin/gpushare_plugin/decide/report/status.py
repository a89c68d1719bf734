"""The status of a GPUShareNode: every card, and which containers have how much of it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter

import msgspec

from gpushare_core.api import bounds
from gpushare_core.api.conditions import ConditionState, dated_conditions
from gpushare_core.api.enums import Health
from gpushare_core.api.share_node import (
    CardFault,
    CardStatus,
    GPUShareNode,
    MemoryTotals,
    NodeStatus,
    PodShare,
    ResourceTotals,
    UnitTotals,
)
from gpushare_core.placement.modes.table import class_of_lock, mode_dividing, mode_serving
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import part_of
from gpushare_core.process.version import VERSION
from gpushare_core.text.printable import printable
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.isolation.node_isolation import GivenKinds
from gpushare_plugin.decide.offer.offering import Offering
from gpushare_plugin.decide.report.card_summary import card_line, card_summary
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.locks import NO_LOCKS, Locks
from gpushare_plugin.decide.units.quantity_text import quantity_text
from gpushare_plugin.decide.use.container_use import ContainerShare
from gpushare_plugin.decide.use.lasting_excess import ExcessSince
from gpushare_plugin.decide.use.reported_use import NOTHING_USED, ReportedUse


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedIsolation:
    """What the status says of isolation and of what gets past it."""

    word: str = ""
    """What new containers get."""
    given: GivenKinds = field(default_factory=dict)
    excess_since: ExcessSince = field(default_factory=dict)


NOTHING_ISOLATED = ReportedIsolation()


def node_status(
    share_node: GPUShareNode,
    offering: Offering,
    allocations: Sequence[PodAllocation],
    conditions: Iterable[ConditionState] = (),
    *,
    locks: Locks = NO_LOCKS,
    faults: Sequence[CardFault] = (),
    use: ReportedUse = NOTHING_USED,
    isolation: ReportedIsolation = NOTHING_ISOLATED,
    now: datetime,
) -> NodeStatus:
    """Returns what to write; equal to the present status where nothing has changed."""
    layout = offering.layout
    placed = sorted(layout.cards, key=lambda card: card.card.index) if layout else []
    shares = _Shares(allocations, use, isolation)
    cards = [_card(card, layout, shares, locks) for card in placed] if layout else []
    mode = mode_dividing(layout.unit).name if layout else ""
    summary = " ".join(card_summary(card, mode) for card in cards)
    status = NodeStatus(
        observed_generation=share_node.metadata.generation,
        plugin_version=VERSION,
        memory_unit=layout.unit.text if layout else "",
        dialect=offering.dialect.name if layout else "",
        isolation=isolation.word if layout else "",
        summary=printable(summary, max_bytes=bounds.SUMMARY),
        card_summaries=[printable(card_line(card, mode), max_bytes=bounds.CARD_SUMMARY) for card in cards],
        units=UnitTotals(
            total=sum(card.units for card in cards), allocated=sum(card.allocated_units for card in cards)
        ),
        memory=_memory(layout, cards, use),
        resources=[*_resources(layout, cards)] if layout and layout.is_mixed else [],
        cards=cards,
        faults=_faults(faults),
    )
    return with_conditions(status, share_node, conditions, now=now)


def with_conditions(
    status: NodeStatus, share_node: GPUShareNode, states: Iterable[ConditionState], *, now: datetime
) -> NodeStatus:
    before, generation = share_node.status.conditions, share_node.metadata.generation
    dated = dated_conditions(states, before=before, generation=generation, now=now)
    return msgspec.structs.replace(status, conditions=dated)


def kept_status(
    share_node: GPUShareNode,
    conditions: Iterable[ConditionState],
    *,
    faults: Sequence[CardFault] = (),
    isolation: str = "",
    now: datetime,
) -> NodeStatus:
    """Returns what to write while it is not known which pods have what: the recorded cards stay."""
    status = msgspec.structs.replace(
        share_node.status,
        observed_generation=share_node.metadata.generation,
        plugin_version=VERSION,
        isolation=isolation,
        faults=_faults(faults),
    )
    return with_conditions(status, share_node, conditions, now=now)


@dataclass(frozen=True, slots=True)
class _Shares:
    """What containers have of cards, and what is known of that."""

    allocations: Sequence[PodAllocation]
    use: ReportedUse
    isolation: ReportedIsolation

    def of(self, uuid: str) -> Iterator[PodShare]:
        for allocation in self.allocations:
            for container, cards in allocation.containers.items():
                if uuid in cards:
                    yield self._share(allocation, container, uuid)

    def _share(self, allocation: PodAllocation, container: str, uuid: str) -> PodShare:
        pod = allocation.pod
        key = ContainerShare(pod.name, pod.uid, container, uuid)
        return PodShare(
            namespace=printable(pod.name.namespace, max_bytes=bounds.WORD),
            name=printable(pod.name.name, max_bytes=bounds.NAME),
            uid=printable(pod.uid, max_bytes=bounds.UID),
            container=printable(container, max_bytes=bounds.WORD),
            units=allocation.containers[container][uuid],
            used_memory=quantity_text(self.use.containers.get(key, 0)),
            isolation=self.isolation.given.get((pod.uid, container), ""),
            exceeded_since=self.isolation.excess_since.get(key, ""),
            orphaned=allocation.orphaned,
        )


def _card(placed: PlacedCard, layout: Layout, shares: _Shares, locks: Locks) -> CardStatus:
    """A card without a lock counts in units of the first class, which is memory."""
    card, lock = placed.card, locks.get(placed.uuid)
    units = {
        resource: next(other.units for other in layout.of(resource).cards if other.uuid == placed.uuid)
        for resource in layout.classes
    }
    return CardStatus(
        index=card.index,
        uuid=card.uuid,
        model=printable(card.model, max_bytes=bounds.MODEL),
        memory=quantity_text(card.memory),
        first_unit=placed.first,
        units=units[lock or layout.classes[0]],
        allocated_units=sum(allocation.cards.get(card.uuid, 0) for allocation in shares.allocations),
        used_memory=quantity_text(shares.use.cards.get(card.uuid, 0), like=_family(layout)),
        compute_score=card.compute_score,
        numa_node=card.numa_node,
        link_group=card.link_group if card.link_group >= 0 else None,
        health=Health.HEALTHY if card.healthy else Health.UNHEALTHY,
        health_reason=printable(card.reason, max_bytes=bounds.HEALTH_REASON),
        cordoned=card.cordoned,
        lock=mode_serving(lock).name if lock else "",
        offers={resource.value: count for resource, count in units.items()} if layout.is_mixed else {},
        pods=sorted(shares.of(card.uuid), key=attrgetter("namespace", "name", "uid", "container")),
    )


def _faults(faults: Sequence[CardFault]) -> list[CardFault]:
    """Leaves out cards whose UUID, which the driver chooses, no status may have."""
    return [
        msgspec.structs.replace(fault, message=printable(fault.message, max_bytes=bounds.FAULT_MESSAGE))
        for fault in faults
        if bounds.is_card_uuid(fault.uuid)
    ]


def _resources(layout: Layout, cards: Sequence[CardStatus]) -> Iterator[ResourceTotals]:
    """Yields what the kubelet shows of each class: units of the cards that are not locked to another."""
    for resource in layout.classes:
        own = [card for card in cards if class_of_lock(card.lock) is resource]
        free = [card for card in cards if not card.lock]
        yield ResourceTotals(
            resource=resource.value,
            total=sum(card.offers[resource.value] for card in (*own, *free)),
            allocated=sum(card.allocated_units for card in own),
        )


def _memory(layout: Layout | None, cards: list[CardStatus], use: ReportedUse) -> MemoryTotals:
    if layout is None:
        return MemoryTotals()
    sums = (
        sum(_memory_of(card, card.units, layout) for card in cards),
        sum(_memory_of(card, card.allocated_units, layout) for card in cards),
        sum(use.cards.get(card.uuid, 0) for card in cards),
    )
    total, allocated, used = (quantity_text(size, like=_family(layout)) for size in sums)
    return MemoryTotals(total=total, allocated=allocated, used=used)


def _memory_of(card: CardStatus, units: int, layout: Layout) -> int:
    of_class = layout.of(class_of_lock(card.lock) or layout.classes[0])
    placed = next(placed for placed in of_class.cards if placed.uuid == card.uuid)
    return of_class.memory_of(units, placed)


def _family(layout: Layout) -> str:
    """Returns a quantity with the kind of suffix that is to be written."""
    memory = part_of(layout.unit, ResourceClass.MEMORY)
    return memory.text if memory else "1Gi"
