"""What a source of devices is, what it knows of a card, and which source a node's spec asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gpushare_core.api.enums import Source
from gpushare_core.api.policy import Devices


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
    healthy: bool = True
    reason: str = ""
    """Why the card is not healthy, for people."""
    used: int = 0
    """Bytes in use, where the source can tell."""


class DeviceSource(Protocol):
    """Where a node's plugin learns of its cards: it is asked again in every round of the reconciler."""

    async def cards(self) -> Sequence[PhysicalCard]:
        """Returns all cards of the node, in the order of their index."""


def open_source(node: str, devices: Devices) -> DeviceSource | None:
    """Returns the source that ``devices`` asks for, or None where this version has none of that kind.

    Each source is imported when it is asked for: a node does not pay with memory for the library of another.
    """
    if devices.source is Source.SIMULATED:
        from gpushare_plugin.devices.simulated import SimulatedSource

        return SimulatedSource(node, devices.simulated)
    return None
