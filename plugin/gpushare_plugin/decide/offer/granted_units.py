"""What unit IDs in use mean, by evidence that outlives the objects in which layouts are recorded.

A container that holds units was told its card. The kubelet's checkpoint keeps that answer; where it cannot be
read, the pod's annotation says the card, too. A layout that contradicts the evidence must not be offered.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from gpushare_core.allocation_annotation import Shares
from gpushare_core.placement.quantity import MIB
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import (
    CardPart,
    MemoryUnit,
    MixedUnit,
    NodeUnit,
    Unit,
    part_of,
    readable_unit,
)
from gpushare_plugin.decide.held.allocations import annotated_classes
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import PodName, Pods
from gpushare_plugin.decide.units.layout import GONE, Layout
from gpushare_plugin.devices.card import PhysicalCard


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantedUnits:
    """The units of one container on one card, as the container was told."""

    holder: str
    """For people."""
    card: str
    """UUID."""
    lowest: int
    highest: int
    units: int
    index: int | None = None
    """The card's."""
    memory: int = 0
    """MiB of the units; 0 when unknown."""
    card_memory: int = 0
    """MiB of the whole card; 0 when unknown."""
    resource: ResourceClass = ResourceClass.MEMORY
    container: str = ""
    unit: Unit | None = None
    """None when unknown: then it follows from the memory, as long as nothing of the card was reserved."""

    def is_of(self, node: NodeUnit) -> bool:
        """Whether the units have the size that they have in ``node``, as far as that is known."""
        unit = part_of(node, self.resource)
        if self.unit:
            return self.unit.meaning in node.meanings
        if unit is None or not self.memory:
            return unit is not None
        return unit.memory_of(self.units, self.card_memory * MIB) // MIB == self.memory

    @property
    def reported_unit(self) -> Unit | None:
        if self.unit:
            return self.unit
        if self.memory < self.units or self.memory == 0:
            return None
        if self.resource is ResourceClass.MEMORY:
            return MemoryUnit.parse(f"{self.memory // self.units}Mi")
        return CardPart(self.resource, max(1, self.card_memory * self.units // self.memory))


class ContradictionError(Exception):
    """What containers were told cannot all be right; the text says what does not go together."""


def stored_granted_units(assigned: AssignedDevices) -> list[GrantedUnits]:
    """Returns what containers of active pods were told, by the checkpoint."""
    names = {assignment.uid: str(assignment.name) for assignment in assigned.pods.values()}
    return [
        GrantedUnits(
            holder=names.get(uid, f"pod with UID {uid}"),
            card=card.uuid,
            lowest=card.numbers[0],
            highest=card.numbers[-1],
            units=len(card.numbers),
            index=card.index,
            memory=card.memory,
            card_memory=card.card_memory,
            resource=entry.resource,
            container=entry.container,
            unit=readable_unit(entry.unit),
        )
        for uid, containers in assigned.stored.items()
        for entry in containers.values()
        for card in entry.cards
    ]


def annotated_granted_units(assigned: AssignedDevices, pods: Pods, node: str) -> list[GrantedUnits]:
    """Returns what annotations say of containers of ``node`` that the checkpoint does not have. Of a
    container with several cards nothing says which of its units lies on which."""
    return [
        GrantedUnits(
            holder=str(held.pod),
            card=card,
            lowest=min(held.numbers),
            highest=max(held.numbers),
            units=len(held.numbers),
            resource=held.resource,
            container=held.container,
            unit=held.unit,
        )
        for held in _annotated_containers(assigned, pods, node)
        for card, units in held.shares.items()
        if units == len(held.numbers)
    ]


@dataclass(frozen=True, slots=True)
class _AnnotatedContainer:
    """Units that a container has, and where they lie by its pod's annotation."""

    pod: PodName
    container: str
    numbers: Sequence[int]
    shares: Shares
    unit: Unit | None
    resource: ResourceClass

    def contradicts(self, layout: Layout) -> bool:
        """Whether ``layout`` has the same units on other cards, or as units of another size."""
        if sum(self.shares.values()) != len(self.numbers):
            return False
        if layout.is_mixed and layout.class_of(self.numbers[0]) is not self.resource:
            return True
        lie_elsewhere = layout.shares(self.numbers) != {card: n for card, n in self.shares.items() if n}
        return lie_elsewhere or (self.unit is not None and self.unit.meaning not in layout.unit.meanings)


def _annotated_containers(assigned: AssignedDevices, pods: Pods, node: str) -> Iterator[_AnnotatedContainer]:
    """Yields the containers that hold units, by annotations alone: the checkpoint does not have them."""
    for pod in pods.values():
        allocation, assignment = pod.allocation, assigned.of(pod)
        if allocation is None or assignment is None or allocation.node != node:
            continue
        stored, classes = assigned.stored_of(pod), annotated_classes(allocation)
        for name, numbers in assignment.containers.items():
            if numbers and name not in stored and (shares := allocation.containers.get(name)):
                card = next(iter(shares))
                unit = readable_unit(allocation.unit_of(card))
                resource = classes.get(card, allocation.resource)
                yield _AnnotatedContainer(pod.name, name, numbers, shares, unit, resource)


def contradicting(layout: Layout, assigned: AssignedDevices, pods: Pods, node: str) -> list[str]:
    """Returns the pods of ``node`` whose units are something else in ``layout`` than in their annotations."""
    annotated = _annotated_containers(assigned, pods, node)
    return sorted({str(container.pod) for container in annotated if container.contradicts(layout)})


def pods_without_evidence(assigned: AssignedDevices, granted: Iterable[GrantedUnits]) -> list[str]:
    """Returns the pods with a container that holds units and is none of ``granted``."""
    known = {(grant.holder, grant.container) for grant in granted}
    found = []
    for pod in assigned.pods_with_units():
        stored = {name: entry.numbers for name, entry in assigned.stored.get(pod.uid, {}).items()}
        holding = (name for held in (pod.containers, stored) for name, numbers in held.items() if numbers)
        if any((str(pod.name), name) not in known for name in holding):
            found.append(str(pod.name))
    return sorted(found)


def with_reported_parts(unit: NodeUnit, granted: Iterable[GrantedUnits]) -> NodeUnit:
    """Returns ``unit``, of several classes, with the sizes that containers were told. Where they were told
    different sizes for one class, no unit goes with all of them."""
    if not isinstance(unit, MixedUnit):
        return unit
    for part in (grant.reported_unit for grant in granted):
        if isinstance(part, MemoryUnit):
            unit = replace(unit, memory=part)
        elif isinstance(part, CardPart) and part.resource is ResourceClass.SLICE:
            unit = replace(unit, slices=part)
    return unit


def granted_unit(candidates: Iterable[NodeUnit | None], granted: Sequence[GrantedUnits]) -> NodeUnit:
    """Returns the first of ``candidates`` that goes with all that was ``granted``, else the unit that
    containers were told. Raises ``ContradictionError`` where no size of a unit goes with all of them."""
    reported = (grant.reported_unit for grant in granted)
    for unit in (*candidates, *reported):
        if unit is not None and all(grant.is_of(unit) for grant in granted):
            return unit
    holders = ", ".join(sorted({grant.holder for grant in granted}))
    raise ContradictionError(f"{holders} hold units of different sizes")


def agrees(layout: Layout, granted: Iterable[GrantedUnits]) -> bool:
    """Whether all units in use lie in ``layout`` on the cards that their containers were told."""
    return all(_lies_on_its_card(layout, grant) for grant in granted)


def _lies_on_its_card(layout: Layout, grant: GrantedUnits) -> bool:
    if layout.is_mixed:
        if grant.resource not in layout.classes:
            return False
        layout = layout.of(grant.resource)
    ends = (layout.card_of(grant.lowest), layout.card_of(grant.highest))
    return all(placed is not None and placed.uuid == grant.card for placed in ends)


def has_sizes(layout: Layout, granted: Iterable[GrantedUnits]) -> bool:
    """Whether the cards of ``layout`` are as large as their containers were told."""
    memories = {placed.uuid: placed.card.memory // MIB for placed in layout.cards}
    return all(grant.card_memory in (0, memories.get(grant.card)) for grant in granted)


@dataclass(frozen=True, slots=True)
class GrantedCard:
    """A card of which units are held."""

    card: PhysicalCard
    lowest: int
    highest: int
    earliest: int
    """The lowest number that its first unit can have, and the highest one."""
    latest: int
    room: int
    least: int
    """Units that it has room for in any case; less than ``room`` where its size is unknown."""

    @classmethod
    def of(
        cls, granted: Sequence[GrantedUnits], present: PhysicalCard | None, unit: NodeUnit
    ) -> "GrantedCard":
        """Returns the card of ``granted``, as large as containers were told and not too small for them."""
        lowest = min(grant.lowest for grant in granted)
        highest = max(grant.highest for grant in granted)
        card_memory = max(grant.card_memory for grant in granted)
        memory = present.memory if present else 0
        if card_memory and memory // MIB != card_memory:
            memory = card_memory * MIB
        memory = max(memory, *(_least_memory(granted, part) for part in unit.parts))
        index = next((grant.index for grant in granted if grant.index is not None), None)
        gone = PhysicalCard(uuid=granted[0].card, index=lowest, memory=memory, healthy=False, reason=GONE)
        card = replace(present, memory=memory) if present else gone
        room = unit.units_in(memory)
        # Where a card is divided into parts its size does not matter.
        fixed = card_memory or not isinstance(unit, MemoryUnit)
        least = room if fixed else highest - lowest + 1
        seen = [(grant, _block(grant, memory, unit)) for grant in granted]
        return cls(
            card=card if index is None else replace(card, index=index),
            lowest=lowest,
            highest=highest,
            earliest=max(grant.highest - block.stop + 1 for grant, block in seen),
            latest=min(grant.lowest - block.start for grant, block in seen),
            room=room,
            least=least,
        )


def _block(grant: GrantedUnits, memory: int, unit: NodeUnit) -> range:
    """Returns which units of a card, counted from its first, are of the class of ``grant``."""
    start = 0
    for part in unit.parts:
        room = part.units_in(memory)
        if part.resource is grant.resource:
            return range(start, start + room)
        start += room
    return range(start)


def _least_memory(granted: Sequence[GrantedUnits], part: Unit) -> int:
    """Returns the bytes that a card has at least on which these units of one class lie."""
    own = [grant for grant in granted if grant.resource is part.resource]
    span = max(grant.highest for grant in own) - min(grant.lowest for grant in own) + 1 if own else 0
    return part.least_memory(span) if own else 0


def granted_cards(
    granted: Iterable[GrantedUnits], present: Iterable[PhysicalCard], unit: NodeUnit
) -> list[GrantedCard]:
    """Returns the cards of which units are held, in the order of these units."""
    by_uuid = {card.uuid: card for card in present}
    by_card: dict[str, list[GrantedUnits]] = {}
    for grant in granted:
        by_card.setdefault(grant.card, []).append(grant)
    cards = [GrantedCard.of(of_card, by_uuid.get(uuid), unit) for uuid, of_card in by_card.items()]
    return sorted(cards, key=lambda card: card.lowest)


def placed_cards(cards: Sequence[GrantedCard], unit: NodeUnit) -> list[tuple[PhysicalCard, int]]:
    """Returns each card with a place that contains all its units in use, where no card overlaps another.
    Raises ``ContradictionError`` where there is none."""
    placed: list[tuple[PhysicalCard, int]] = []
    end = 0
    limits = [*_latest_places(cards)[1:], None]
    for card, limit in zip(cards, limits, strict=True):
        room = card.room if limit is None else max(card.least, min(card.room, limit - end))
        earliest = max(end, card.earliest + card.room - room)
        latest = card.latest if limit is None else min(card.latest, limit - room)
        if earliest > latest:
            raise ContradictionError(_overlap(cards))
        usual = card.lowest // room * room  # where it lies if all cards are of one size
        first = usual if earliest <= usual <= latest else earliest
        memory = card.card.memory if room == card.room else unit.parts[0].least_memory(room)
        placed.append((replace(card.card, memory=memory), first))
        end = first + room
    return placed


def _latest_places(cards: Sequence[GrantedCard]) -> list[int]:
    """Returns the highest place of each card that leaves room for those after it."""
    latest: list[int] = []
    for card in reversed(cards):
        latest.append(min(card.latest, latest[-1] - card.least) if latest else card.latest)
    return latest[::-1]


def _overlap(cards: Sequence[GrantedCard]) -> str:
    found = [
        f"units of card {other.card.uuid} are held that lie between those of card {one.card.uuid}"
        for one, other in pairwise(cards)
        if other.lowest <= one.highest
    ]
    return "; ".join(found) or "the cards of which units are held have no room for these units"
