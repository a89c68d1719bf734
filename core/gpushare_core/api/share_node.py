"""GPUShareNode: one per enabled node. The operator writes ``spec``, that node's plugin writes ``status``.

The CRD is generated from these classes: their docstrings, and those of their fields, are its descriptions.
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from gpushare_core.api import bounds
from gpushare_core.api.api_object import (
    Amount,
    ApiObject,
    CardUuid,
    Moment,
    ObjectMeta,
    Time,
    Unit,
    Word,
    bounded,
)
from gpushare_core.api.bounds import rule, rules
from gpushare_core.api.conditions import ConditionList
from gpushare_core.api.enums import (
    ClearedBy,
    DialectName,
    Health,
    Injection,
    LogLevel,
    MeasurementScope,
    MemoryIsolation,
    Mode,
    OnExcess,
    Preemption,
    Source,
    UnitChange,
)
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import CANDIDATES
from gpushare_core.placement.quantity import parse_memory

IGNORED_XIDS = (13, 31, 43, 45, 68, 109)
"""Of applications: what they do wrong harms no other one on the card."""
INVENTORY_FOLDERS = ("/etc/gpushare", "/var/lib/gpushare")
"""On nodes: where inventories may be. The plugin's pod sees those of the two that its policy names."""
ISOLATION_FOLDER = "/var/lib/gpushare/isolation"
"""On nodes: what containers are given that isolation Hook keeps to their units."""
CDI_KIND = "^[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?/[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?$"
"""Vendor and class. Source: the Container Device Interface's specification."""

_INVENTORY_PATH = rules(
    rule(
        f"self.matches('^({'|'.join(INVENTORY_FOLDERS)})/[A-Za-z0-9][A-Za-z0-9._-]*$')",
        f"inventoryPath must be a file directly in {' or '.join(INVENTORY_FOLDERS)}",
    )
)
_CDI_KIND = rules(
    rule(f"self.matches('{CDI_KIND}')", "cdiKind must be a vendor and a class such as nvidia.com/gpu")
)
_IGNORED_XIDS = {"default": [*IGNORED_XIDS], "x-kubernetes-list-type": "set"}

CONTEXT_MEMORY = "600Mi"
"""More than a context of CUDA takes on any card that was measured: see docs/real-card.md."""
MAX_CONTEXT_MEMORY = "4Gi"

_Quantity = Annotated[str, Meta(max_length=20, extra_json_schema=bounds.QUANTITY_RULE)]
_ContextMemory = Annotated[
    str, Meta(max_length=20, extra_json_schema=bounds.quantity_up_to(MAX_CONTEXT_MEMORY, "contextMemory"))
]
_Number = Annotated[int, Meta(ge=0, le=63)]
_Xid = Annotated[int, Meta(ge=0, le=65535)]


class SimulatedCards(ApiObject, frozen=True, kw_only=True):
    """Cards that do not exist, for trying the system out and for tests."""

    count: Annotated[int, Meta(ge=1, le=64)]
    memory: _Quantity
    """Of each card."""
    model: Annotated[str, Meta(max_length=63)] = "Sim"
    compute_score: Annotated[int, Meta(ge=0, le=1_000_000)] = 100
    """How fast a card is. Pods that share a card go to nodes with slow cards first, pods that ask for whole
    cards to nodes with fast ones."""
    numa_node: _Number = 0
    """NUMA node of each card. A pod that asks for several whole cards gets them on one NUMA node if
    possible."""
    link_group: _Number | None = None
    """Cards of the same NUMA node with the same number are linked directly; left out: not linked."""

    def __post_init__(self) -> None:
        parse_memory(self.memory)


class CardHealth(ApiObject, frozen=True, kw_only=True):
    """When a card counts as sick, and when it returns."""

    ignored_xids: Annotated[list[_Xid], Meta(max_length=128, extra_json_schema=_IGNORED_XIDS)] = field(
        default_factory=lambda: [*IGNORED_XIDS]
    )
    """Xid messages of the driver that do not make a card sick; by default those that applications cause."""
    quiet_seconds: Annotated[int, Meta(ge=1, le=86400)] = 600
    """How long a sick card must show no fault before it returns; doubled with every relapse."""


class Devices(ApiObject, frozen=True, kw_only=True):
    """Where the cards of a node come from."""

    source: Source = Source.NVML
    """NVML: the cards that NVIDIA's driver lists. Inventory: those that a file on the node lists. Simulated:
    cards that do not exist."""
    simulated: Annotated[list[SimulatedCards], Meta(max_length=16)] = field(default_factory=list)
    """With source Simulated: the cards of the node."""
    inventory_path: Annotated[str, Meta(max_length=253, extra_json_schema=_INVENTORY_PATH)] = (
        "/etc/gpushare/inventory.yaml"
    )
    """With source Inventory: the file on the node that lists its cards."""
    injection: Injection = Injection.ENVIRONMENT
    """Environment: variables name a container's cards, as NVIDIA's container runtime reads them; with source
    Inventory also device nodes and mounts.

    CDI: the container runtime gets qualified CDI names."""
    cdi_kind: Annotated[str, Meta(max_length=127, extra_json_schema=_CDI_KIND)] = "nvidia.com/gpu"
    """With injection CDI: vendor and class of the names, which end with the card's UUID. An inventory may
    name others."""
    health: CardHealth = field(default_factory=CardHealth)


class Measurement(ApiObject, frozen=True, kw_only=True):
    """Whose use of card memory is measured."""

    scope: MeasurementScope = MeasurementScope.CARDS
    """Off: nothing is measured. Cards: how much memory of each card is in use.

    Containers: also how much each container uses, and whether that is more than it asked for. With source
    NVML the plugin then runs with hostPID."""
    interval_seconds: Annotated[int, Meta(ge=10, le=3600)] = 30
    """Seconds from one measurement to the next."""


class Isolation(ApiObject, frozen=True, kw_only=True):
    """What keeps a container from using more memory of a card than it asked for."""

    memory: MemoryIsolation = MemoryIsolation.NONE
    """What limits a container to its share of a card. A change applies to containers that start afterwards.

    None: nothing; plugin.measurement.scope Containers shows who uses more.

    Hook: a library in the container refuses memory beyond the share when a program requests it from CUDA.

    Driver: NVIDIA's driver refuses it; needs a driver of the branch r615 or newer, cgroup v2, and NVIDIA's
    container toolkit 1.20.1 or newer."""
    context_memory: _ContextMemory = CONTEXT_MEMORY
    """With memory Hook: memory that counts for a process's CUDA context when the process first uses a card;
    at most 4Gi. A container whose share is not larger than this cannot use the card."""
    on_excess: OnExcess = OnExcess.REPORT
    """Report: a container that uses more memory of a card than it asked for is reported.

    Evict: its pod is also evicted when that has lasted for graceSeconds; PodDisruptionBudgets are
    respected."""
    grace_seconds: Annotated[int, Meta(ge=0, le=86400)] = 60
    """With onExcess Evict: how long a container may use more."""

    def __post_init__(self) -> None:
        parse_memory(self.context_memory)


class NodeSpec(ApiObject, frozen=True, kw_only=True):
    """What the policy asks of this node."""

    policy: str
    mode: Mode
    memory_unit: str
    dialect: DialectName = DialectName.GPUSHARE
    strategy: Strategy = Strategy.BINPACK
    preemption: Preemption = Preemption.ENABLED
    candidates: Annotated[
        int | None,
        Meta(
            description="How many of the policy's nodes that fit a pod are offered to kube-scheduler; 0: all"
            f" of them; left out: {CANDIDATES}."
        ),
    ] = None
    slices_per_card: int | None = None
    unit_change: UnitChange | None = None
    """While pods with former units keep a new unit or mode from being applied: with Drain the node takes no
    new pods, with Keep it does; left out: Drain."""
    reserved_memory: _Quantity = "0"
    devices: Devices = field(default_factory=Devices)
    log_level: LogLevel = LogLevel.INFO
    measurement: Measurement = field(default_factory=Measurement)
    isolation: Isolation | None = None
    """What keeps containers from using more memory than they asked for; left out: nothing."""
    extender_log_level: LogLevel | None = None
    """Log level of the extender; left out: info. The most verbose level of all nodes counts."""

    def __post_init__(self) -> None:
        parse_memory(self.reserved_memory)


class CardFault(ApiObject, frozen=True, kw_only=True):
    """Why a card is sick, or was sick within the last day: after a relapse it has to wait longer."""

    uuid: CardUuid
    reason: Word
    """For programs: an Xid such as Xid79, or RowRemappingFailed, RecoveryActionDue, CardError or CardGone."""
    message: Annotated[str, bounded(bounds.text(bounds.FAULT_MESSAGE))] = ""
    """What is wrong and what to do."""
    since: Moment
    """Since when the card takes no new pods."""
    last_seen: Moment
    """When the fault last showed something new."""
    quiet_since: Time = ""
    """Since when the card shows no fault; empty while the driver still reports it."""
    quiet_seconds: int = 0
    """How long the card must show no fault before it returns; doubled with every relapse."""
    relapses: int = 0
    """How often the card became sick again within a day after it had returned."""
    cleared: Time = ""
    """When the card returned; empty while it is sick."""
    cleared_by: ClearedBy | None = None


class PodShare(ApiObject, frozen=True, kw_only=True):
    """What one container holds of a card, by the kubelet's records."""

    namespace: Word
    name: Annotated[str, bounded(bounds.text(bounds.NAME))]
    uid: Annotated[str, bounded(bounds.text(bounds.UID))]
    container: Word
    units: int
    used_memory: Amount = "0"
    isolation: Word = ""
    """What limits the container to its units: Hook or Driver; empty: nothing."""
    exceeded_since: Time = ""
    """Since when the container uses more memory of the card than it asked for, with Hook more by
    contextMemory. Empty: it does not, or the policy asks for no isolation."""
    orphaned: bool = False
    """Whether the kubelet still keeps the units of a pod that no longer runs by the API server: it was
    deleted by force, or has just ended."""


class CardStatus(ApiObject, frozen=True, kw_only=True):
    """One card. Programs name it by UUID; the index is for people."""

    index: int
    uuid: CardUuid
    model: Annotated[str, bounded(bounds.text(bounds.MODEL))] = ""
    memory: Amount
    first_unit: int | None = None
    """Number of the card's first unit: with memoryUnit and memory it says what every unit ID of the card
    means. The plugin writes it before it offers the units to the kubelet."""
    units: int
    allocated_units: int = 0
    used_memory: Amount = "0"
    compute_score: int = 0
    numa_node: int = 0
    link_group: int | None = None
    """Cards of the same NUMA node with the same number are linked directly, for example by NVLink. Absent
    when unknown."""
    health: Health = Health.HEALTHY
    health_reason: Annotated[str, bounded(bounds.text(bounds.HEALTH_REASON))] = ""
    cordoned: bool = False
    """Whether the annotation gpushare.io/cordon of this object names the card: it takes no new pods. Pods
    that hold units of it stay."""
    lock: Word = ""
    """In mode Mixed: what the card serves now, and what its units are: Memory, Slices or Exclusive. Empty
    while no pod holds any of it: then its units are memory."""
    offers: Annotated[dict[str, int], bounded({"maxProperties": bounds.RESOURCES})] = field(
        default_factory=dict
    )
    """In mode Mixed: units of memory, slices and whole cards that the card offers when it is free."""
    pods: Annotated[list[PodShare], bounded(bounds.items(bounds.SHARES))] = field(default_factory=list)


class UnitTotals(ApiObject, frozen=True, kw_only=True):
    total: int = 0
    allocated: int = 0


class MemoryTotals(ApiObject, frozen=True, kw_only=True):
    """Memory as quantities, such as 64Gi."""

    total: Amount = "0"
    allocated: Amount = "0"
    used: Amount = "0"


class ResourceTotals(ApiObject, frozen=True, kw_only=True):
    """What a node shares of one resource."""

    resource: Word
    total: int
    allocated: int = 0


_BY_UUID = bounded(bounds.map_by("uuid", bounds.CARDS))


class NodeStatus(ApiObject, frozen=True, kw_only=True):
    """The cards that the plugin found, and what pods hold of them."""

    observed_generation: int = 0
    plugin_version: Word = ""
    memory_unit: Unit = ""
    """The unit in force; differs from spec while UnitChangeBlocked is True."""
    dialect: Word = ""
    """The dialect in force; differs from spec while UnitChangeBlocked is True. The plugin writes it before
    it offers units to the kubelet. Empty: gpushare.io."""
    isolation: Word = ""
    """What limits new containers to their units now: None, Hook or Driver. Unavailable: the node cannot do
    what the policy asks for, and offers nothing new."""
    summary: Annotated[str, bounded(bounds.text(bounds.SUMMARY))] = ""
    """Allocated/total units of each card, in order of index."""
    card_summaries: Annotated[
        list[Annotated[str, bounded(bounds.text(bounds.CARD_SUMMARY))]],
        bounded(bounds.items(bounds.CARDS)),
    ] = field(default_factory=list)
    """A line for each card, in order of index; kubectl describe shows these lines first."""
    conditions: ConditionList = field(default_factory=list)
    units: UnitTotals = field(default_factory=UnitTotals)
    memory: MemoryTotals = field(default_factory=MemoryTotals)
    resources: Annotated[list[ResourceTotals], bounded(bounds.items(bounds.RESOURCES))] = field(
        default_factory=list
    )
    """In mode Mixed: for memory, slices and whole cards, what the cards offer that are free or serve it."""
    cards: Annotated[list[CardStatus], _BY_UUID] = field(default_factory=list)
    faults: Annotated[list[CardFault], _BY_UUID] = field(default_factory=list)
    """Faults of cards that are sick, or were sick within the last day. A restarted plugin continues from
    these."""


class GPUShareNode(ApiObject, frozen=True, kw_only=True):
    """The cards of one node, and which pods hold what of them. Cluster-scoped, named like the node."""

    metadata: ObjectMeta
    spec: NodeSpec
    status: NodeStatus = field(default_factory=NodeStatus)


class LenientCondition(Struct, rename="camel"):
    type: str
    status: str = ""
    message: str = ""


class LenientIsolation(Struct, rename="camel"):
    memory: str = MemoryIsolation.NONE


class LenientSpec(Struct, rename="camel"):
    mode: str = ""
    memory_unit: str = ""
    slices_per_card: int | None = None
    unit_change: str = UnitChange.DRAIN
    dialect: str = DialectName.GPUSHARE
    strategy: str = ""
    preemption: str = Preemption.ENABLED
    candidates: int | None = None
    extender_log_level: str = LogLevel.INFO
    isolation: LenientIsolation = field(default_factory=LenientIsolation)


class LenientShare(Struct, rename="camel"):
    uid: str
    units: int
    namespace: str = ""
    name: str = ""
    container: str = ""
    orphaned: bool = False


class LenientCard(Struct, rename="camel"):
    uuid: str
    units: int
    index: int = 0
    memory: str = ""
    first_unit: int | None = None
    allocated_units: int = 0
    compute_score: int = 0
    numa_node: int = -1
    link_group: int = -1
    health: str = ""
    cordoned: bool = False
    lock: str = ""
    offers: dict[str, int] | None = None
    pods: list[LenientShare] | None = None


class LenientDivision(Struct, rename="camel"):
    """How the cards of a node are divided, and who holds what: the part of its status that both need."""

    memory_unit: str = ""
    dialect: str = ""
    cards: list[LenientCard] | None = None


class LenientStatus(LenientDivision, rename="camel"):
    conditions: list[LenientCondition] | None = None
    isolation: str = ""


class LenientMeta(Struct, rename="camel"):
    name: str
    deletion_timestamp: str | None = None


class LenientShareNode(Struct, rename="camel"):
    """The part of a GPUShareNode that the extender needs, with plain texts for words.

    ``GPUShareNode`` refuses an object of a newer version, with a word that this version does not know. The
    extender has to read it, and say to pods which mode it is that it does not serve. The auditor reads the
    same cards, but neither spec nor conditions: it compares a status whatever the rest says.
    """

    metadata: LenientMeta
    spec: LenientSpec = field(default_factory=LenientSpec)
    status: LenientStatus | None = None
