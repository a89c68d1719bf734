"""Mode Slices: every card is cut into equal parts, and a pod gets one part of each of several cards."""

from gpushare_core.placement.modes.distinct_cards import DistinctCards
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import CardPart, UnitFields


class SlicesMode(DistinctCards):
    """A card has as many units as slices; a pod never has two of the same card."""

    name = "Slices"
    resource = ResourceClass.SLICE
    things = "GPU slices"

    def unit(self, fields: UnitFields, /) -> CardPart:
        if fields.slices_per_card is None:
            raise ValueError("modes Slices and Mixed need slicesPerCard")
        return CardPart(self.resource, fields.slices_per_card)

    def _free(self, amount: int) -> str:
        return "a card with a free slice" if amount == 1 else f"{amount} cards with a free slice"
