"""On which cards GetPreferredAllocation has sent the containers of a pod."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpushare_core.placement.requests import ResourceClass


@dataclass(frozen=True, slots=True)
class PreferredCard:
    """What GetPreferredAllocation answered for a pod: the cards, and for how many of its containers."""

    cards: tuple[str, ...]
    containers: int = 1
    classes: Mapping[str, ResourceClass] = field(default_factory=dict)
    """Card UUID -> the class for which it was answered."""
    reason: str = ""
    """Why other cards than the annotated ones; empty where they are the annotated ones."""

    def cards_of(self, resource: ResourceClass) -> tuple[str, ...]:
        """Returns the cards with which requests for ``resource`` were answered."""
        return tuple(card for card in self.cards if self.classes.get(card, resource) is resource)


PreferredCards = Mapping[str, PreferredCard]
"""By the pod's UID."""
