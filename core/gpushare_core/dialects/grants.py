"""What a container gets of cards, for codecs to write down."""

from dataclasses import dataclass

from gpushare_core.placement.requests import ResourceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGrant:
    uuid: str
    index: int
    units: int
    memory: int
    """Bytes of the card that the container has."""
    card_units: int
    """Of the whole card."""
    card_memory: int
    """Bytes of the whole card."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerGrant:
    resource: ResourceClass
    cards: tuple[CardGrant, ...]
    """In the order of their units."""
    pod_units: int
    """Of the whole pod's request; where the pod is unknown, of this container."""
    unit: str
    """What one unit is, as annotations write it."""

    @property
    def units(self) -> int:
        return sum(card.units for card in self.cards)


@dataclass(frozen=True, slots=True)
class CardPlace:
    """How people and other systems name a card, and its size."""

    index: int
    units: int
    """Of the whole card, in the unit of its node."""
