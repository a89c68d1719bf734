"""Mode Memory: units of memory, all of a request on one card."""

from collections.abc import Iterable, Sequence

from gpushare_core.placement.card_choice import CardRequest
from gpushare_core.placement.modes.sharing_mode import Room, SharingMode
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.placement.units import MemoryUnit, UnitFields


class MemoryMode(SharingMode):
    """A card has as many units as its memory holds; all containers of a pod share one card."""

    name = "Memory"
    resource = ResourceClass.MEMORY

    def unit(self, fields: UnitFields, /) -> MemoryUnit:
        return MemoryUnit.parse(fields.memory_unit)

    def on_cards(self, amount: int) -> CardRequest:
        return CardRequest(cards=1, units=amount)

    def greatest(self, units: Iterable[int]) -> int:
        return max(0, max(units, default=0))

    def explain(self, amount: int, room: Room) -> str:
        """Names the biggest card where even an empty one would not suffice."""
        reason = f"insufficient GPU memory in one card: asked {amount}, largest free {room.greatest}"
        biggest = f", biggest card {room.possible}" if amount > room.possible else ""
        return f"{reason}{biggest}{room.remark}"

    def most_text(self, most: int) -> str:
        return f"the biggest card has {most}: all units of a pod lie on one card"

    def containers(self, request: PodRequest, cards: Sequence[str]) -> dict[str, dict[str, int]]:
        (card,) = cards
        return {name: {card: units} for name, units in request.containers.items()}
