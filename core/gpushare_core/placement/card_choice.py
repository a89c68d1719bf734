"""Placement: which card a request gets, which nodes are better, and why something does not fit.

Pure and shared by extender, plugin and command line, so that all three give the same answer.
Amounts are units, signed: an over-full card has negative free units and fits nothing.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum


class Strategy(StrEnum):
    """How units are laid out over cards."""

    BINPACK = "Binpack"
    SPREAD = "Spread"


@dataclass(frozen=True, slots=True)
class Card:
    """One card as the books see it."""

    uuid: str
    index: int
    units: int
    allocated: int = 0
    healthy: bool = True

    @property
    def free(self) -> int:
        return self.units - self.allocated

    def fits(self, units: int) -> bool:
        return self.healthy and 0 < units <= self.free


Preference = Callable[[Card], tuple[int, int]]

PREFERENCES: dict[Strategy, Preference] = {
    Strategy.BINPACK: lambda card: (card.free, card.index),
    Strategy.SPREAD: lambda card: (-card.free, card.index),
}
"""The card with the least value wins. Another strategy is another row."""


def choose(cards: Iterable[Card], units: int, strategy: Strategy = Strategy.BINPACK) -> Card | None:
    """Returns the card that ``units`` go to, None when no card has room. Lowest index on ties."""
    return min((card for card in cards if card.fits(units)), key=PREFERENCES[strategy], default=None)


def largest_free(cards: Iterable[Card]) -> int:
    """Returns the free units of the emptiest healthy card; 0 when there is none or all are over-full."""
    return max((card.free for card in cards if card.healthy and card.free > 0), default=0)


def explain(units: int, largest: int, *, biggest: int | None = None) -> str:
    """Returns for people why ``units`` do not fit where the emptiest card has ``largest`` units free.

    ``biggest`` is the size of the biggest card: it is named where even an empty card would not do.
    """
    reason = f"insufficient GPU memory in one card: asked {units}, largest free {largest}"
    return reason if biggest is None or units <= biggest else f"{reason}, biggest card {biggest}"
