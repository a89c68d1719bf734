"""Placement: which cards a request gets, and why these.

Pure, and shared by extender, plugin and command line, so that all three give the same answer.
Amounts are units, signed: an over-full card has negative free units and fits nothing.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from heapq import nsmallest


class Strategy(StrEnum):
    """How units are laid out over cards."""

    BINPACK = "Binpack"
    SPREAD = "Spread"


class ChoiceReason(StrEnum):
    """Why a request gets its cards; the values are for people."""

    ONLY = "only card with room"
    IN_USE = "in use already, so that unused cards stay free"
    TIGHTEST = "tightest card that fits"
    EMPTIEST = "emptiest card that fits"
    FIRST = "first of the cards that fit equally well"
    LINKED = "smallest group of linked cards that fits"
    NUMA_NODE = "smallest NUMA node that fits"


@dataclass(frozen=True, slots=True)
class CardRequest:
    """What a request means on cards: ``units`` on each of ``cards`` distinct ones."""

    cards: int
    units: int


@dataclass(frozen=True, slots=True)
class Card:
    """One card, with what is allocated of it."""

    uuid: str
    index: int
    units: int
    allocated: int = 0
    healthy: bool = True
    """Whether it may get new pods: not when it is cordoned, either."""
    numa_node: int = -1
    """Negative when unknown."""
    link_group: int = -1
    """Cards of a NUMA node with the same number are linked directly. Negative when unknown."""
    lockable: bool = False
    """Whether its first use takes it from other classes: cards that are in use already come first."""

    @property
    def free(self) -> int:
        return self.units - self.allocated

    @property
    def is_unused(self) -> bool:
        """Whether nobody uses it, and somebody could."""
        return self.healthy and self.allocated == 0 < self.units

    def fits(self, units: int) -> bool:
        return self.healthy and 0 < units <= self.free


Preference = Callable[[Card], tuple[int, int]]

PREFERENCES: dict[Strategy, Preference] = {
    Strategy.BINPACK: lambda card: (card.free, card.index),
    Strategy.SPREAD: lambda card: (-card.free, card.index),
}
"""The card with the least value wins. Another strategy is another row."""

REASONS: dict[Strategy, ChoiceReason] = {
    Strategy.BINPACK: ChoiceReason.TIGHTEST,
    Strategy.SPREAD: ChoiceReason.EMPTIEST,
}
"""Why a card wins, where the preference decides."""


def choose(
    cards: Iterable[Card], request: CardRequest, strategy: Strategy = Strategy.BINPACK
) -> tuple[Card, ...]:
    """Returns the distinct cards that ``request`` gets, none when it does not fit. Lowest index on ties."""
    preference = PREFERENCES[strategy]
    fitting = [card for card in cards if card.fits(request.units)]
    if len(fitting) < request.cards:
        return ()
    return tuple(nsmallest(request.cards, fitting, key=lambda card: (card.lockable, preference(card))))


def choice_reason(
    cards: Iterable[Card], units: int, *, chosen: Collection[str], strategy: Strategy
) -> ChoiceReason:
    """Returns why those ``chosen`` (UUIDs) of ``cards`` get ``units`` each."""
    fitting = [card for card in cards if card.fits(units)]
    taken = [card for card in fitting if card.uuid in chosen]
    if len(taken) == len(fitting):
        return ChoiceReason.ONLY
    lockable = {card.lockable for card in taken}
    alike = [card for card in fitting if card.lockable in lockable]
    if len(alike) == len(taken):
        return ChoiceReason.IN_USE
    is_tie = len({card.free for card in alike}) == 1
    return ChoiceReason.FIRST if is_tie else REASONS[strategy]
