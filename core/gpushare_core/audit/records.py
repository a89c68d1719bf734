"""What each book says of one node, read by itself: the auditor compares these values and nothing else.

A book that was not read is ``None`` and is not compared; one that was read and says nothing is empty. So
every program audits with the books that it has.

The kubelet's books (PodResources, checkpoint) are to be read after all others: what they say that a pod holds
it held when the others were read, unless it was admitted since.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.placement.units import NodeUnit

Shares = Mapping[str, int]
"""Card UUID -> units."""


class PodKey(NamedTuple):
    """A pod, by what the books know it by."""

    namespace: str
    name: str
    uid: str = ""
    """Empty where the book does not say it, as PodResources."""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.name else f"with UID {self.uid}"


class ContainerKey(NamedTuple):
    """A container of a pod; without a name where a book knows pods alone."""

    pod: PodKey
    container: str

    def __str__(self) -> str:
        return f"{self.pod}, container {self.container}" if self.container else str(self.pod)


# The GPUShareNode


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusHolder:
    """What one container holds of a card, by the status."""

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
    """That it shares, of the class that it serves now."""
    allocated: int = 0
    first_unit: int | None = None
    """Number of its first unit; None where no plugin has recorded it."""
    lock: ResourceClass | None = None
    """In mode Mixed what it serves alone; None while nobody has anything of it, and in the other modes."""
    offers: Mapping[ResourceClass, int] = field(default_factory=dict)
    """In mode Mixed: units of each class that it offers when it is free."""
    healthy: bool = True
    cordoned: bool = False
    holders: tuple[StatusHolder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareNodeRecord:
    """The GPUShareNode of a node: its spec is the operator's, its status the plugin's."""

    name: str
    unit: NodeUnit | None = None
    """What cards are divided into, as in force; None where the status does not say it (yet)."""
    dialect: str = ""
    """Name of the one in force."""
    cards: tuple[StatusCard, ...] = ()
    units_total: int | None = None
    """The sums that the status itself says; None where they were not read."""
    units_allocated: int | None = None
    deleting: bool = False
    problem: str = ""
    """Why the object cannot be read; then nothing else is said."""

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
    """What the kubelet knows it by: another one than the API server's for static pods."""
    phase: str = "Running"
    deleting: bool = False
    request: PodRequest | None = None
    """What it asks for in any dialect; None where only its metadata was read."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """Those of ours and of all dialects."""
    annotations_size: int = 0
    """Bytes of all that it has."""
    variables: Mapping[str, Mapping[str, str | None]] = field(default_factory=dict)
    """Container -> what its author sets of the variables that name cards or amounts; None for a value from
    elsewhere. Without those that ConfigMaps and Secrets bring."""
    is_plugin: bool = False
    """Whether it is a device plugin of ours, by its labels: it has to see all cards of its node."""

    @property
    def ended(self) -> bool:
        return self.phase in ("Succeeded", "Failed")


# The kubelet


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldUnits:
    """Units of one extended resource that the kubelet keeps for one container."""

    resource: str
    """Name of the extended resource."""
    numbers: Sequence[int] = ()
    """Of units of ours, ascending and each once: what their IDs decode to."""
    foreign: int = 0
    """How many devices it has under IDs of a replaced system's plugin: cards and sizes do not follow from
    these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedContainer:
    """One container by PodResources. They know no UID: two pods of one name can be listed side by side."""

    key: ContainerKey
    units: tuple[HeldUnits, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCards:
    """What the environment of a container names."""

    cards: tuple[str, ...]
    """UUIDs, by our own variable."""
    units: int | None = None
    """Of all of them together; None where the variable is missing or no number."""
    unit: str = ""
    """What one unit is, as annotations write it."""
    others: Mapping[str, str] = field(default_factory=dict)
    """The other variables that name the cards by UUID, as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContainer:
    """One container by the kubelet's checkpoint: its units, and what its plugin answered for them."""

    units: tuple[HeldUnits, ...] = ()
    told: SeenCards | None = None
    """None where the stored answer names no card in our words."""


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
    """Includes what is reserved and held."""
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
class NodeRecords:
    """All that was read of one node."""

    node: str
    share_node: ShareNodeRecord | None = None
    pods: Mapping[str, PodRecord] | None = None
    """By the UID that the API server has: all pods that are bound to the node, ended ones too."""
    resources: Sequence[ListedContainer] | None = None
    """PodResources: every container of every active pod that has units of ours."""
    checkpoint: Mapping[ContainerKey, StoredContainer] | None = None
    """The pods have a UID, and no name. It may show pods that have ended since it was written."""
    environments: Mapping[ContainerKey, SeenCards | None] | None = None
    """Every running container, by the environment that its process really has; None for one that names no
    card of ours."""
    ledger: LedgerRecord | None = None
    """Of a node that the extender does not know: an empty one."""
    hardware: Mapping[str, int] | None = None
    """Card UUID -> bytes of its memory, by the driver or the inventory. Of a card that changed while units of
    it were held: what it had when they were granted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecords:
    """What only the host of a node tells; as in ``NodeRecords``."""

    resources: Sequence[ListedContainer] | None = None
    checkpoint: Mapping[ContainerKey, StoredContainer] | None = None
    environments: Mapping[ContainerKey, SeenCards | None] | None = None
    hardware: Mapping[str, int] | None = None


NO_HOST = HostRecords()


@dataclass(frozen=True, slots=True)
class ClusterRecords:
    """All that was read of a cluster."""

    nodes: Mapping[str, NodeRecords]
    """By name."""
