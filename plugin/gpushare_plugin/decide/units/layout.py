"""Which units lie on which card, and of which class they are.

The kubelet remembers units by ID over restarts of everything, so an ID must mean the same card for as long
as a pod holds it: while units are held, known cards keep their place and size, and new ones go where nobody
holds anything. Where a card is open to several classes, it has a block of units for each, one after another:
so a number alone tells card and class.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from gpushare_core.api.enums import Health
from gpushare_core.api.share_node import CardStatus, NodeStatus
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import Meaning, NodeUnit, Unit, parse_node_unit
from gpushare_plugin.devices.card import PhysicalCard

GONE = "the card is gone: it was there when its units were given out"


@dataclass(frozen=True, slots=True)
class PlacedCard:
    """A card whose units are ``first`` to ``first`` + ``units`` - 1.

    Where it is open to several classes, they are in blocks; ``Layout.of`` has those of one class.
    """

    card: PhysicalCard
    first: int
    room: int
    """Units of its whole memory: what is reserved of it has numbers, too."""
    units: int

    @property
    def uuid(self) -> str:
        return self.card.uuid

    @property
    def end(self) -> int:
        """One more than the highest number that the card has room for."""
        return self.first + self.room

    @property
    def numbers(self) -> range:
        """Numbers of the card's units, in a layout of one class."""
        return range(self.first, self.first + self.units)


Places = Mapping[str, int]
"""Card UUID -> number of its first unit."""


@dataclass(frozen=True, slots=True)
class Layout:
    """All cards of a node in the order of their units."""

    unit: NodeUnit
    cards: tuple[PlacedCard, ...]
    reserved: int = 0
    """Bytes of each card that stay out of sharing."""

    @property
    def only(self) -> Unit:
        """The unit of a layout of one class."""
        (part,) = self.unit.parts
        return part

    @property
    def classes(self) -> tuple[ResourceClass, ...]:
        """What a card serves as long as nobody has units of it."""
        return tuple(part.resource for part in self.unit.parts)

    @property
    def is_mixed(self) -> bool:
        """Whether cards are open to several classes."""
        return len(self.unit.parts) > 1

    def of(self, resource: ResourceClass) -> "Layout":
        """Returns the units of one of ``classes`` alone."""
        if not self.is_mixed:
            return self
        before = self.classes.index(resource)
        part = self.unit.parts[before]
        cards = (self._block(placed, self.unit.parts[:before], part) for placed in self.cards)
        return Layout(part, tuple(cards), self.reserved)

    def _block(self, placed: PlacedCard, before: Sequence[Unit], part: Unit) -> PlacedCard:
        """Blocks have room for a card's whole memory, so that a change of what is reserved moves none."""
        memory = placed.card.memory
        first = placed.first + sum(unit.units_in(memory) for unit in before)
        return _place(placed.card, first, part, self.reserved)

    def room_of(self, card: str) -> int:
        """Returns how many units the whole memory of ``card`` (UUID) is."""
        return next((placed.room for placed in self.cards if placed.uuid == card), 0)

    def class_of(self, number: int) -> ResourceClass | None:
        """Returns the class of unit ``number``, or None where no card has it."""
        placed = self.card_of(number)
        if placed is None or not self.is_mixed:
            return self.classes[0] if placed else None
        end = placed.first
        for part in self.unit.parts:
            end += part.units_in(placed.card.memory)
            if number < end:
                return part.resource
        return None

    def memory_of(self, units: int, placed: PlacedCard) -> int:
        return self.only.memory_of(units, max(0, placed.card.memory - self.reserved))

    @property
    def units(self) -> int:
        return sum(placed.units for placed in self.cards)

    @property
    def end(self) -> int:
        """One more than the highest number that any card has room for."""
        return max((placed.end for placed in self.cards), default=0)

    @property
    def places(self) -> Places:
        return {placed.uuid: placed.first for placed in self.cards}

    def card_of(self, number: int) -> PlacedCard | None:
        """Returns the card that unit ``number`` lies on; in the gap that reserved memory leaves, too."""
        before = bisect_right(self.cards, number, key=attrgetter("first"))
        placed = self.cards[before - 1] if before else None
        return placed if placed and number < placed.end else None

    def stopped(self, reason: str) -> "Layout":
        return self.on(replace(placed.card, healthy=False, reason=reason) for placed in self.cards)

    def on(self, present: Iterable[PhysicalCard]) -> "Layout":
        """Returns the same units on its cards as they are now; one that is not ``present`` is gone."""
        now = {card.uuid: card for card in present}
        cards = (replace(placed, card=_in_place(now.get(placed.uuid), placed.card)) for placed in self.cards)
        return replace(self, cards=tuple(cards))

    def shares(self, numbers: Sequence[int]) -> dict[str, int]:
        """Returns card UUID -> how many of ``numbers`` lie on it; numbers of no card are left out."""
        if not numbers:
            return {}
        lowest, highest = self.card_of(min(numbers)), self.card_of(max(numbers))
        if lowest is not None and lowest is highest:
            return {lowest.uuid: len(numbers)}
        cards = (self.card_of(number) for number in numbers)
        return dict(Counter(placed.uuid for placed in cards if placed))

    def means_the_same(self, other: "Layout | None") -> bool:
        """Whether every ID stands for the same memory of the same card in both."""
        return other is not None and self._meaning() == other._meaning()

    def _meaning(self) -> tuple[tuple[Meaning, ...], list[tuple[str, int, int]]]:
        return self.unit.meanings, [(placed.uuid, placed.first, placed.card.memory) for placed in self.cards]


def lay_out(
    cards: Sequence[PhysicalCard], unit: NodeUnit, *, reserved: int, places: Places | None = None
) -> Layout:
    """Returns units of ``unit`` laid out over ``cards``; ``reserved`` bytes of each stay out of sharing.

    Each card takes the room of its whole memory, so that a change of ``reserved`` moves no other card.
    Cards with one of ``places`` lie there, the others in the first gap that is wide enough, in their order.
    """
    fixed = places or {}
    placed = [_place(card, fixed[card.uuid], unit, reserved) for card in cards if card.uuid in fixed]
    taken = sorted((card.first, card.end) for card in placed if card.room)
    for card in cards:
        if card.uuid not in fixed:
            added = _place(card, _gap(taken, unit.units_in(card.memory)), unit, reserved)
            placed.append(added)
            taken = sorted([*taken, (added.first, added.end)])
    return Layout(unit, tuple(sorted(placed, key=lambda card: (card.first, card.room))), reserved)


def _place(card: PhysicalCard, first: int, unit: NodeUnit, reserved: int) -> PlacedCard:
    return PlacedCard(card, first, unit.units_in(card.memory), unit.units_in(card.memory, reserved=reserved))


def _gap(taken: Iterable[tuple[int, int]], room: int) -> int:
    """Returns where ``room`` units have place beside what is ``taken``, as low as possible."""
    at = 0
    for first, end in taken:
        if first - at >= max(room, 1):
            return at
        at = max(at, end)
    return at


def keep_places(
    present: Iterable[PhysicalCard], known: Sequence[PhysicalCard], *, held: bool
) -> tuple[PhysicalCard, ...]:
    """Returns the cards to lay out: those that are ``present``.

    Where units are ``held`` the ``known`` ones come first, in the places that they had.
    """
    present_by_uuid = {card.uuid: card for card in present}
    if not (held and known):
        return tuple(present_by_uuid.values())
    kept = [_in_place(present_by_uuid.pop(card.uuid, None), card) for card in known]
    return (*kept, *_indexed(present_by_uuid.values(), {card.index for card in known}))


def _in_place(present: PhysicalCard | None, known: PhysicalCard) -> PhysicalCard:
    if present is None:
        return replace(known, healthy=False, reason=GONE)
    return replace(present, index=known.index, memory=known.memory)


def _indexed(cards: Iterable[PhysicalCard], taken: set[int]) -> Iterator[PhysicalCard]:
    """Yields ``cards`` with indices that are not ``taken``: their own between those, else the next ones."""
    taken = set(taken)
    for card in cards:
        following = max(taken) + 1
        index = card.index if card.index < following and card.index not in taken else following
        taken.add(index)
        yield replace(card, index=index)


def recorded_layout(status: NodeStatus) -> Layout | None:
    """Returns what the plugin wrote to the status before it was restarted; None where it wrote nothing."""
    if not status.memory_unit or not status.cards:
        return None
    try:
        unit = parse_node_unit(status.memory_unit)
        cards = [_recorded(card) for card in status.cards]
    except ValueError:  # no plugin wrote that
        return None
    firsts = {card.uuid: card.first_unit for card in status.cards if card.first_unit is not None}
    layout = lay_out(cards, unit, reserved=0, places=firsts)
    if layout.is_mixed:
        return layout
    units = {card.uuid: card.units for card in status.cards}
    return replace(layout, cards=tuple(replace(placed, units=units[placed.uuid]) for placed in layout.cards))


def _recorded(card: CardStatus) -> PhysicalCard:
    return PhysicalCard(
        uuid=card.uuid,
        index=card.index,
        memory=parse_memory(card.memory),
        model=card.model,
        compute_score=card.compute_score,
        numa_node=card.numa_node,
        link_group=-1 if card.link_group is None else card.link_group,
        healthy=card.health is Health.HEALTHY,
        reason=card.health_reason,
        cordoned=card.cordoned,
    )
