"""What a source of devices is, what it knows of a card, and what a container gets with one."""

from dataclasses import dataclass
from typing import Protocol

from gpushare_core.api.served import Problem


@dataclass(frozen=True, slots=True)
class DeviceNode:
    host_path: str
    container_path: str
    permissions: str = "rw"
    """Of ``r``, ``w`` and ``m``."""


@dataclass(frozen=True, slots=True)
class HostMount:
    host_path: str
    container_path: str
    read_only: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """Of one card, with what all cards of the inventory come with."""

    device_nodes: tuple[DeviceNode, ...] = ()
    mounts: tuple[HostMount, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Name and value."""
    runtime_variable: str = ""
    """The variable that tells the vendor's runtime the cards of a container; empty where there is none."""
    runtime_name: str = ""
    """The card in that variable."""
    cdi_kind: str = ""
    """Vendor and class; empty for those of the policy."""
    cdi_name: str = ""
    """The device of that kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicalCard:
    uuid: str
    index: int
    memory: int
    """Bytes."""
    model: str = ""
    compute_score: int = 0
    numa_node: int = -1
    """Negative when unknown."""
    link_group: int = -1
    """Cards of a NUMA node with the same group are linked directly. Negative when unknown."""
    healthy: bool = True
    reason: str = ""
    """Why the card is not healthy, for people."""
    passing: bool = False
    """Whether the reason may be over in a moment."""
    repair: Problem | None = None
    """What the driver says has to be done before the card is fit again."""
    unproven: bool = False
    """Whether the source was asked and did not answer: a healthy card stays healthy, and a sick one sick. A
    card that is not healthy because it never had an answer is closed until it has one, without a fault."""
    equipment: Equipment | None = None
    """What a container gets with the card besides the variables that name it; None: nothing."""
    cordoned: bool = False
    """Whether people want no new pod on the card."""
    closed: bool = False
    """Whether the node lacks what new pods on its cards have to get."""

    @property
    def is_open(self) -> bool:
        return self.healthy and not self.is_kept

    @property
    def is_kept(self) -> bool:
        """Whether the card is for the pods alone that have units of it."""
        return self.cordoned or self.closed


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOutCard:
    """A card that is there and cannot be shared."""

    index: int
    uuid: str = ""
    """Empty where the source cannot tell."""
    reason: str
    """Why, and what to do, for people."""
    healthy: bool = True
    """False where it is left out because something is wrong with it."""


@dataclass(frozen=True, slots=True)
class CardEvent:
    """An Xid message of the driver."""

    uuid: str
    """Of the card; empty where the driver does not say which card it is."""
    xid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a source knows of the node's cards, now."""

    cards: tuple[PhysicalCard, ...] = ()
    """Cards to share, by index. With a ``problem`` those of the last reading that had none."""
    left_out: tuple[LeftOutCard, ...] = ()
    events: tuple[CardEvent, ...] = ()
    """Since the last reading."""
    problem: Problem | None = None
    """Why the source does not know now which cards there are, and what to do."""

    @property
    def unknown(self) -> Problem | None:
        """Why no cards are known: without them nothing can be decided."""
        return None if self.cards else self.problem


class DeviceSource(Protocol):
    """Where a node's plugin learns of its cards: asked in every round of the reconciler."""

    async def read(self) -> Reading:
        """Returns within seconds. What goes wrong is in the reading, and not raised."""
