"""Mode Exclusive: whole cards, linked directly or at least of one NUMA node where that is possible."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from gpushare_core.placement.card_choice import Card, ChoiceReason, Strategy
from gpushare_core.placement.modes.distinct_cards import DistinctCards
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import WHOLE_CARD, Unit, UnitFields


class ExclusiveMode(DistinctCards):
    """A card has one unit."""

    name = "Exclusive"
    resource = ResourceClass.CARD
    things = "GPU cards"

    def unit(self, _fields: UnitFields, /) -> Unit:
        return WHOLE_CARD

    def choose(
        self, cards: Iterable[Card], amount: int, strategy: Strategy = Strategy.BINPACK
    ) -> Mapping[str, int]:
        """Takes cards that are linked, else those of one NUMA node, else any. Of several groups the one with
        the fewest cards left over: large groups stay whole."""
        return super().choose(_pool(cards, amount)[0], amount, strategy)

    def reason(self, cards: Sequence[Card], chosen: Mapping[str, int], strategy: Strategy) -> ChoiceReason:
        pool, reason = _pool(cards, len(chosen))
        is_part = reason is not None and len(pool) < sum(card.fits(1) for card in cards)
        return reason if reason and is_part else super().reason(pool, chosen, strategy)

    def _free(self, amount: int) -> str:
        return "a free card" if amount == 1 else f"{amount} free cards"


Group = tuple[int, ...]
"""What cards have in common; the last number is negative where that is unknown."""


_KINSHIPS: Mapping[ChoiceReason, Callable[[Card], Group]] = {
    ChoiceReason.LINKED: lambda card: (card.numa_node, card.link_group),
    ChoiceReason.NUMA_NODE: lambda card: (card.numa_node,),
}
"""What cards have in common that a pod gets together: the closest first."""


def _pool(cards: Iterable[Card], amount: int) -> tuple[list[Card], ChoiceReason | None]:
    """Returns the free cards of which ``amount`` are taken, and why these; None where it is all of them."""
    free = [card for card in cards if card.fits(1)]
    for reason, kinship in _KINSHIPS.items():
        if pool := _smallest(_groups(free, kinship), amount):
            return pool, reason
    return free, None


def _groups(cards: Iterable[Card], kinship: Callable[[Card], Group]) -> dict[Group, list[Card]]:
    groups: dict[Group, list[Card]] = {}
    for card in cards:
        groups.setdefault(kinship(card), []).append(card)
    return groups


def _smallest(groups: Mapping[Group, list[Card]], amount: int) -> list[Card]:
    """Returns the smallest known group of at least ``amount`` cards, the first on ties; empty if none is."""
    enough = [
        (len(cards), group) for group, cards in groups.items() if group[-1] >= 0 and len(cards) >= amount
    ]
    return groups[min(enough)[1]] if enough else []
