"""Mode Exclusive: whole cards, of one NUMA node where that is possible."""

from collections.abc import Iterable, Mapping

from gpushare_core.placement.card_choice import Card, Strategy
from gpushare_core.placement.distinct_cards import DistinctCards
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
        """Takes the NUMA node on which the fewest cards are left over; cards of several where it must."""
        by_node: dict[int, list[Card]] = {}
        free = [card for card in cards if card.fits(1)]
        for card in free:
            by_node.setdefault(card.numa_node, []).append(card)
        enough = [(len(each), node) for node, each in by_node.items() if node >= 0 and len(each) >= amount]
        return super().choose(by_node[min(enough)[1]] if enough else free, amount, strategy)

    def _free(self, amount: int) -> str:
        return "a free card" if amount == 1 else f"{amount} free cards"
