"""What a container is given of cards, as codecs put it into words."""

from dataclasses import dataclass

from gpushare_core.placement.requests import ResourceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class CardGrant:
    """What one container has of one card."""

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
    """What one container has."""

    resource: ResourceClass
    cards: tuple[CardGrant, ...]
    """In the order of their units."""
    pod_units: int
    """What the whole pod asks for; where the pod is not known, what this container has."""

    @property
    def units(self) -> int:
        return sum(card.units for card in self.cards)


@dataclass(frozen=True, slots=True)
class CardPlace:
    """What people and other systems know a card by, and how large it is."""

    index: int
    units: int
    """Of the whole card, in the unit of its node."""
