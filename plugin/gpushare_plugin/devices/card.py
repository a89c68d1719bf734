"""What a source of devices is, and what it knows of a card."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalCard:
    """One card, now."""

    uuid: str
    index: int
    memory: int
    """Bytes."""
    model: str = ""
    compute_score: int = 0
    numa_node: int = -1
    """Negative when unknown."""
    link_group: int = -1
    """Cards of a NUMA node with the same number are linked directly. Negative when unknown."""
    healthy: bool = True
    reason: str = ""
    """Why the card is not healthy, for people."""
    used: int = 0
    """Bytes in use, where the source can tell."""


class DeviceSource(Protocol):
    """Where a node's plugin learns of its cards: it is asked again in every round of the reconciler."""

    async def cards(self) -> Sequence[PhysicalCard]:
        """Returns all cards of the node, in the order of their index."""
