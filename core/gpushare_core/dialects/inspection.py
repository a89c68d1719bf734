"""Nodes by the extender's ledger, for a dialect to put into the JSON that its tools read."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedPod:
    namespace: str
    name: str
    uid: str
    created: str
    """RFC 3339; empty if unknown."""
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedCard:
    index: int
    units: int
    allocated: int
    pods: tuple[InspectedPod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedNode:
    """Amounts are in the node's unit."""

    name: str
    cards: tuple[InspectedCard, ...]
    """In order of index."""

    @property
    def units(self) -> int:
        return sum(card.units for card in self.cards)

    @property
    def allocated(self) -> int:
        return sum(card.allocated for card in self.cards)
