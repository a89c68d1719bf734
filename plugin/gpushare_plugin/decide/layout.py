"""Which units lie on which card.

The kubelet remembers units by ID over restarts of everything, so an ID must mean the same card for as long
as a pod holds it: while units are held, known cards keep their place and size, and new ones go to the end.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from gpushare_core.api.share_node import CardStatus, Health
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.devices.source import PhysicalCard

GONE = "the card is gone: it was there when its units were given out"


@dataclass(frozen=True, slots=True)
class PlacedCard:
    """A card whose units are ``first`` to ``first`` + ``units`` - 1."""

    card: PhysicalCard
    first: int
    units: int

    @property
    def uuid(self) -> str:
        return self.card.uuid

    @property
    def numbers(self) -> range:
        """Numbers of the card's units."""
        return range(self.first, self.first + self.units)


@dataclass(frozen=True, slots=True)
class Layout:
    """All cards of a node in the order of their units."""

    unit: MemoryUnit
    cards: tuple[PlacedCard, ...]
    end: int
    """One more than the highest number that any card has room for."""

    @property
    def units(self) -> int:
        """Of all cards together."""
        return sum(placed.units for placed in self.cards)

    def card_of(self, number: int) -> PlacedCard | None:
        """Returns the card that unit ``number`` lies on; in the gap that reserved memory leaves, too."""
        if not 0 <= number < self.end:
            return None
        return self.cards[bisect_right(self.cards, number, key=_first) - 1]

    def shares(self, numbers: Sequence[int]) -> dict[str, int]:
        """Returns card UUID -> how many of ``numbers`` lie on it; numbers of no card are left out."""
        if not numbers:
            return {}
        lowest, highest = self.card_of(min(numbers)), self.card_of(max(numbers))
        if lowest is not None and lowest is highest:
            return {lowest.uuid: len(numbers)}
        cards = (self.card_of(number) for number in numbers)
        return dict(Counter(placed.uuid for placed in cards if placed))


def _first(placed: PlacedCard) -> int:
    return placed.first


def lay_out(cards: Sequence[PhysicalCard], unit: MemoryUnit, *, reserved: int) -> Layout:
    """Returns units of ``unit`` laid out over ``cards``; ``reserved`` bytes of each stay out of sharing.

    Each card takes the room of its whole memory, so that a change of ``reserved`` moves no other card.
    """
    *firsts, end = accumulate((unit.units_in(card.memory) for card in cards), initial=0)
    placed = (
        PlacedCard(card, first, unit.units_in(card.memory, reserved=reserved))
        for card, first in zip(cards, firsts, strict=True)
    )
    return Layout(unit, tuple(placed), end)


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
    next_index = max(card.index for card in known) + 1
    added = [replace(card, index=index) for index, card in enumerate(present_by_uuid.values(), next_index)]
    return (*kept, *added)


def _in_place(present: PhysicalCard | None, known: PhysicalCard) -> PhysicalCard:
    if present is None:
        return replace(known, healthy=False, reason=GONE, used=0)
    return replace(present, index=known.index, memory=known.memory)


def recorded_cards(cards: Sequence[CardStatus]) -> tuple[PhysicalCard, ...]:
    """Returns what the plugin wrote to the status before it was restarted, in the order of the units."""
    return tuple(_recorded(card) for card in cards)


def _recorded(card: CardStatus) -> PhysicalCard:
    return PhysicalCard(
        uuid=card.uuid,
        index=card.index,
        memory=parse_memory(card.memory),
        model=card.model,
        compute_score=card.compute_score,
        numa_node=card.numa_node,
        healthy=card.health is Health.HEALTHY,
        reason=card.health_reason,
    )
