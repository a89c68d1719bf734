"""The common part of modes in which a request gets one unit on each of several distinct cards."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import ClassVar

from gpushare_core.placement.card_choice import CardRequest
from gpushare_core.placement.modes.sharing_mode import Room, SharingMode
from gpushare_core.placement.requests import PodRequest


class DistinctCards(SharingMode):
    """An amount is a number of cards, also over all containers of a pod."""

    things: ClassVar[str]
    """For people: what amounts are of."""

    def on_cards(self, amount: int) -> CardRequest:
        return CardRequest(cards=amount, units=1)

    def greatest(self, units: Iterable[int]) -> int:
        return sum(unit > 0 for unit in units)

    def explain(self, amount: int, room: Room) -> str:
        """Names the number of cards where even empty ones would not suffice."""
        reason = f"insufficient {self.things}: needs {self._free(amount)}, has {room.greatest}"
        cards = f", of {room.possible} in all" if amount > room.possible else ""
        return f"{reason}{cards}{room.remark}"

    def most_text(self, most: int) -> str:
        return f"no node has more than {most}"

    def containers(self, request: PodRequest, cards: Sequence[str]) -> dict[str, dict[str, int]]:
        """Ordinary init containers lend their cards to those after them, as in the kubelet."""
        given: dict[str, dict[str, int]] = {}
        staying = 0
        for name, amount in request.containers.items():
            given[name] = dict.fromkeys(cards[staying : staying + amount], 1)
            staying += 0 if name in request.init_containers else amount
        return given

    @abstractmethod
    def _free(self, amount: int) -> str:
        """Returns for people what is needed for ``amount``."""
