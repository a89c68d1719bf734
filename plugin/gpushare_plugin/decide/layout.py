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
from gpushare_core.placement.quantity import parse_quantity
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.devices.cards import PhysicalCard

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
        return sum(placed.units for placed in self.cards)

    def card_of(self, number: int) -> PlacedCard | None:
        """The card that unit ``number`` lies on; in the gap that reserved memory leaves, too."""
        if not 0 <= number < self.end:
            return None
        return self.cards[bisect_right(self.cards, number, key=_first) - 1]

    def shares(self, numbers: Sequence[int]) -> dict[str, int]:
        """Card UUID -> how many of ``numbers`` lie on it; numbers of no card are left out."""
        if not numbers:
            return {}
        lowest, highest = self.card_of(min(numbers)), self.card_of(max(numbers))
        if lowest is not None and lowest is highest:
            return {lowest.uuid: len(numbers)}
        found = (self.card_of(number) for number in numbers)
        return dict(Counter(placed.uuid for placed in found if placed))


def _first(placed: PlacedCard) -> int:
    return placed.first


def lay_out(cards: Sequence[PhysicalCard], unit: MemoryUnit, *, reserved: int) -> Layout:
    """Lay units of ``unit`` out over ``cards``, of each of which ``reserved`` bytes stay out of sharing.

    Each card takes the room of its whole memory, so that a change of ``reserved`` moves no other card.
    """
    *firsts, end = accumulate((unit.units_in(card.memory) for card in cards), initial=0)
    placed = (
        PlacedCard(card, first, unit.units_in(card.memory, reserved=reserved))
        for card, first in zip(cards, firsts, strict=True)
    )
    return Layout(unit, tuple(placed), end)


def settle(
    found: Iterable[PhysicalCard], known: Sequence[PhysicalCard], *, held: bool
) -> tuple[PhysicalCard, ...]:
    """The cards to lay out: what was found, where units are ``held`` in the places of what was known."""
    now = {card.uuid: card for card in found}
    if not (held and known):
        return tuple(now.values())
    kept = [_in_place(now.pop(card.uuid, None), card) for card in known]
    after = max((card.index for card in known), default=-1) + 1
    added = [replace(card, index=index) for index, card in enumerate(now.values(), after)]
    return (*kept, *added)


def _in_place(now: PhysicalCard | None, before: PhysicalCard) -> PhysicalCard:
    if now is None:
        return replace(before, healthy=False, reason=GONE, used=0)
    return replace(now, index=before.index, memory=before.memory)


def recorded_cards(cards: Sequence[CardStatus]) -> tuple[PhysicalCard, ...]:
    """What the plugin wrote down before it was restarted, in the order of the units."""
    return tuple(_recorded(card) for card in cards)


def _recorded(card: CardStatus) -> PhysicalCard:
    return PhysicalCard(
        uuid=card.uuid,
        index=card.index,
        memory=parse_quantity(card.memory),
        model=card.model,
        compute_score=card.compute_score,
        numa_node=card.numa_node,
        healthy=card.health is Health.HEALTHY,
        reason=card.health_reason,
    )
