"""What a source of devices is, and what it knows of a card."""

from dataclasses import dataclass
from typing import Protocol

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.equipment import Equipment


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
    passing: bool = False
    """Whether that may be over in a moment."""
    repair: Problem | None = None
    """What the driver says has to be done with the card before it is fit again."""
    unproven: bool = False
    """Whether that was asked and not answered: a card that is well stays so, a sick one, too. One that is not
    healthy for want of any answer is closed until there is one, and has no fault."""
    equipment: Equipment | None = None
    """What a container gets with it besides the variables that name it; None: nothing."""
    cordoned: bool = False
    """Whether people want no new pod on it."""

    @property
    def is_open(self) -> bool:
        """Whether new pods may come to it."""
        return self.healthy and not self.cordoned


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutCard:
    """A card that is there and cannot be shared."""

    index: int
    uuid: str = ""
    """Empty where the source cannot tell."""
    reason: str
    """Why, and what to do, for people."""
    healthy: bool = True
    """Whether it is left out on purpose, not because something is wrong with it."""


@dataclass(frozen=True, slots=True)
class CardEvent:
    """An Xid message of the driver."""

    uuid: str
    """Of the card; empty where the driver does not tell: then it may be any."""
    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a source knows of the node's cards, now."""

    cards: tuple[PhysicalCard, ...] = ()
    """To share, in the order of their index. With a ``problem`` those of the last reading without one."""
    left_out: tuple[LeftOutCard, ...] = ()
    events: tuple[CardEvent, ...] = ()
    """What happened since the last reading."""
    problem: Problem | None = None
    """Why the source cannot tell now which cards there are, and what to do."""

    @property
    def unknown(self) -> Problem | None:
        """Why it was never known which cards there are: nothing can be decided without them."""
        return None if self.cards else self.problem


class DeviceSource(Protocol):
    """Where a node's plugin learns of its cards: it is asked again in every round of the reconciler."""

    async def read(self) -> Reading:
        """Returns what is known now, within seconds. What goes wrong is in the reading, never raised."""
