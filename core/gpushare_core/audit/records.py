"""What each book says of one node: the auditor compares these values and nothing else.

A book that was not read is ``None``, and is not compared. A book that was read and says nothing is empty. So
every program audits with the books that it has.

The kubelet's books (PodResources, checkpoint) have to be read after all others: then a pod held what they say
when the others were read, unless the kubelet admitted it since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.placement.units import NodeUnit

Shares = Mapping[str, int]
"""Card UUID -> units."""


class PodKey(NamedTuple):
    """A pod as books name it."""

    namespace: str
    name: str
    uid: str = ""
    """Empty where the book does not have it, as PodResources."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.name else f"with UID {self.uid}"


class ContainerKey(NamedTuple):
    """A container of a pod; without a name where a book knows only pods."""

    pod: PodKey
    container: str

    def __str__(self) -> str:
        return f"{self.pod}, container {self.container}" if self.container else str(self.pod)


# The GPUShareNode


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusHolder:
    """One container with units of a card, by the status."""

    key: ContainerKey
    units: int
    orphaned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusCard:
    """One card, by the status."""

    uuid: str
    index: int
    memory: int
    """Bytes."""
    units: int
    """Shared units, of the class that the card serves now."""
    allocated: int = 0
    first_unit: int | None = None
    """None where no plugin has recorded it."""
    lock: ResourceClass | None = None
    """In mode Mixed the one class that the card serves; None while it is free, and in other modes."""
    offers: Mapping[ResourceClass, int] = field(default_factory=dict)
    """In mode Mixed: units of each class that the card offers while it is free."""
    healthy: bool = True
    cordoned: bool = False
    holders: tuple[StatusHolder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareNodeRecord:
    """The GPUShareNode of a node."""

    name: str
    unit: NodeUnit | None = None
    """What cards are divided into now; None where the status does not say it (yet)."""
    dialect: str = ""
    """Name of the one in force."""
    cards: tuple[StatusCard, ...] = ()
    units_total: int | None = None
    """The status' own sums; None where they were not read."""
    units_allocated: int | None = None
    deleting: bool = False
    problem: str = ""
    """Why the object cannot be read; then all other fields are empty."""

    @property
    def mixed_cards(self) -> tuple[StatusCard, ...]:
        """Returns the cards of a node in mode Mixed; none of other nodes."""
        return self.cards if self.unit is not None and len(self.unit.parts) > 1 else ()

    def card(self, uuid: str) -> StatusCard | None:
        return next((card for card in self.cards if card.uuid == uuid), None)


# The API server


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """One pod of the node as the API server has it."""

    key: PodKey
    node: str
    """That it is bound to."""
    kubelet_uid: str = ""
    """The UID by which the kubelet knows the pod: not the API server's for static pods."""
    phase: str = "Running"
    deleting: bool = False
    request: PodRequest | None = None
    """In any dialect; None where only the pod's metadata was read."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Ours and those of all dialects."""
    annotations_size: int = 0
    """Bytes of all annotations."""
    variables: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """Container -> variables that name cards or amounts, as the pod's author sets them; None for a value from
    elsewhere. Without the variables that whole ConfigMaps and Secrets bring."""
    is_plugin: bool = False
    """Whether the pod is our device plugin, which has to see all cards of its node."""

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


# The kubelet


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUnits:
    """Units of one extended resource that the kubelet keeps for one container."""

    resource: str
    numbers: Sequence[int] = ()
    """Ascending and distinct, from the IDs of our units."""
    foreign: int = 0
    """Number of devices with IDs of a replaced system's plugin, which say neither card nor size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedContainer:
    """One container by PodResources, which have no UIDs: two pods of one name can be listed side by side."""

    key: ContainerKey
    units: tuple[HeldUnits, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCards:
    """The cards that the environment of a container names."""

    cards: tuple[str, ...]
    """UUIDs, by our own variable."""
    units: int | None = None
    """Of all cards together; None where the variable is missing or no number."""
    unit: str = ""
    """What one unit is, as annotations write it."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Other variables that name cards by UUID, with their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContainer:
    """One container by the kubelet's checkpoint: its units, and the plugin's response to their Allocate."""

    units: tuple[HeldUnits, ...] = ()
    response: SeenCards | None = None
    """None where the response does not have our variable."""


# The extender


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerShare:
    """What one pod has of one card, by the extender."""

    pod: PodKey
    units: int
    reserved: bool = False
    """Whether its bind is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCard:
    uuid: str
    units: int
    allocated: int
    """Includes reserved and held units."""
    lock: ResourceClass | None = None
    shares: tuple[LedgerShare, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRecord:
    """The extender's sums of one node."""

    unit: NodeUnit | None = None
    cards: tuple[LedgerCard, ...] = ()

    def card(self, uuid: str) -> LedgerCard | None:
        return next((card for card in self.cards if card.uuid == uuid), None)


# Together


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecords:
    """What can be read only on the node itself."""

    resources: Sequence[ListedContainer] | None = None
    """PodResources: every container with units of ours of every active pod."""
    checkpoint: Mapping[ContainerKey, StoredContainer] | None = None
    """Its pods have a UID and no name. It may have pods that have ended since it was written."""
    environments: Mapping[ContainerKey, SeenCards | None] | None = None
    """Every running container, by the environment of its process; None where that names no card of ours."""
    hardware: Mapping[str, int] | None = None
    """Card UUID -> bytes of its memory, by the driver or the inventory. A card that changed while units of it
    were held has the memory that it had when they were granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecords(HostRecords):
    """All that was read of one node."""

    node: str
    share_node: ShareNodeRecord | None = None
    pods: Mapping[str, PodRecord] | None = None
    """API server's UID -> pod: all pods that are bound to the node, ended ones too."""
    ledger: LedgerRecord | None = None
    """Empty for a node that the extender does not know."""


NO_HOST = HostRecords()


@dataclass(frozen=True, slots=True)
class ClusterRecords:
    """All that was read of a cluster."""

    nodes: Mapping[str, NodeRecords]
    """By name."""
