"""What a mode of sharing is: all that differs between the ways in which a node shares its cards."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import ClassVar, NamedTuple

from gpushare_core.placement.card_choice import (
    Card,
    CardRequest,
    ChoiceReason,
    Strategy,
    choice_reason,
    choose,
)
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.placement.units import NodeUnit, Unit, UnitFields


class Room(NamedTuple):
    """What the cards of a node offer to one request."""

    greatest: int
    """The greatest amount that fits now."""
    possible: int
    """The greatest amount that would fit if nothing was allocated."""
    unhealthy: int = 0
    """Cards that offer nothing because they are unhealthy or cordoned."""

    @property
    def remark(self) -> str:
        """For people, at the end of a refusal; empty where every card counts."""
        if self.unhealthy > 1:
            return f"; {self.unhealthy} unhealthy or cordoned cards do not count"
        return "; 1 unhealthy or cordoned card does not count" if self.unhealthy else ""


class NodeMode(ABC):
    """How a node shares its cards."""

    name: ClassVar[str]
    """As the API writes it."""

    @property
    @abstractmethod
    def served(self) -> "tuple[SharingMode, ...]":
        """The ways of sharing that its cards are open to, each card one at a time."""

    @abstractmethod
    def unit(self, fields: UnitFields, /) -> NodeUnit:
        """Raises ``ValueError`` when ``fields`` name no unit."""


class SharingMode(NodeMode):
    """One way of sharing. Amounts are of its resource class, units are those of cards."""

    resource: ClassVar[ResourceClass]
    """What nodes in this mode serve."""

    @property
    def served(self) -> "tuple[SharingMode, ...]":
        return (self,)

    @abstractmethod
    def unit(self, fields: UnitFields, /) -> Unit:
        """Raises ``ValueError`` when ``fields`` name no unit."""

    @abstractmethod
    def on_cards(self, amount: int) -> CardRequest:
        """Returns how ``amount`` lies on cards."""

    @abstractmethod
    def greatest(self, units: Iterable[int]) -> int:
        """Returns the greatest amount that fits cards with so many ``units`` free, each; 0 when none does."""

    @abstractmethod
    def explain(self, amount: int, room: Room) -> str:
        """Returns for people why ``amount`` does not fit where there is ``room``."""

    @abstractmethod
    def most_text(self, most: int) -> str:
        """Returns for people that a pod can have ``most`` of the resource on an empty node, and no more."""

    @abstractmethod
    def containers(self, request: PodRequest, cards: Sequence[str]) -> dict[str, dict[str, int]]:
        """Returns container -> card UUID -> units, for a pod whose units lie on ``cards``."""

    def choose(
        self, cards: Iterable[Card], amount: int, strategy: Strategy = Strategy.BINPACK
    ) -> Mapping[str, int]:
        """Returns card UUID -> units for ``amount``; empty when it does not fit."""
        request = self.on_cards(amount)
        return {card.uuid: request.units for card in choose(cards, request, strategy)}

    def reason(self, cards: Sequence[Card], chosen: Mapping[str, int], strategy: Strategy) -> ChoiceReason:
        """Returns why ``choose`` has ``chosen`` these of ``cards``."""
        return choice_reason(cards, max(chosen.values()), chosen=chosen.keys(), strategy=strategy)

    def room(self, cards: Sequence[Card]) -> Room:
        amounts = [(card.units, card.allocated) for card in cards if card.healthy]
        return self.room_of(amounts, unhealthy=len(cards) - len(amounts))

    def room_of(self, amounts: Collection[tuple[int, int]], *, unhealthy: int) -> Room:
        """Returns the same from the units, and the allocated units, of each healthy card."""
        return Room(
            self.greatest([units - allocated for units, allocated in amounts]),
            self.greatest([units for units, _ in amounts]),
            unhealthy,
        )
