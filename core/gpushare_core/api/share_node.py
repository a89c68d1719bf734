"""GPUShareNode: one per enabled node. The operator writes ``spec``, that node's plugin writes ``status``."""

from typing import Annotated

from pydantic import Field

from gpushare_core.api import bounds
from gpushare_core.api.api_model import Amount, ApiModel, CardUuid, Quantity, Time, Unit, Word, bounded
from gpushare_core.api.enums import ClearedBy, DialectName, Health, LogLevel, Mode, Preemption, UnitChange
from gpushare_core.api.policy import (
    CONDITION_LIST,
    Condition,
    Devices,
    Measurement,
    MemoryTotals,
    NodeRule,
    ObjectMeta,
    PolicySpec,
    UnitTotals,
)
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.node_ranking import CANDIDATES


class NodeSpec(ApiModel):
    """What the policy asks of this node."""

    policy: str
    mode: Mode
    memory_unit: str
    dialect: DialectName = DialectName.GPUSHARE
    strategy: Strategy = Strategy.BINPACK
    preemption: Preemption = Preemption.ENABLED
    candidates: int | None = Field(
        default=None,
        description="How many of the policy's nodes that a pod fits are offered to kube-scheduler; 0: all of"
        f" them; left out: {CANDIDATES}.",
    )
    slices_per_card: int | None = None
    unit_change: UnitChange | None = Field(
        default=None,
        description="Whether new pods come while others keep the unit or mode from being applied: not with"
        " Drain, which is meant where it is left out.",
    )
    reserved_memory: Quantity = "0"
    devices: Devices = Field(default_factory=Devices)
    log_level: LogLevel = LogLevel.INFO
    measurement: Measurement = Field(default_factory=Measurement)
    extender_log_level: LogLevel | None = Field(
        default=None,
        description="Asked of the extender; left out: info. Of all nodes the most verbose counts.",
    )

    @classmethod
    def of_rule(cls, policy: str, spec: PolicySpec, rule: NodeRule) -> "NodeSpec":
        asked, candidates = spec.extender.log_level, spec.placement.candidates
        return cls(
            policy=policy,
            mode=rule.mode,
            memory_unit=spec.memory_unit,
            dialect=spec.dialect,
            strategy=spec.placement.strategy,
            preemption=spec.placement.preemption,
            candidates=None if candidates == CANDIDATES else candidates,
            slices_per_card=rule.slices_per_card,
            unit_change=None if spec.unit_change is UnitChange.DRAIN else spec.unit_change,
            reserved_memory=rule.reserved_memory,
            devices=rule.devices,
            log_level=spec.plugin.log_level,
            measurement=spec.plugin.measurement,
            extender_log_level=None if asked is LogLevel.INFO else asked,
        )


class CardFault(ApiModel):
    """Why a card is sick, or was: that is kept for a day, for a relapse has to be quiet for longer."""

    uuid: CardUuid
    reason: Word
    """For programs: an Xid as in Xid79, RowRemappingFailed, RecoveryActionDue, CardError, CardGone."""
    message: Annotated[str, bounded(bounds.text(bounds.FAULT_MESSAGE))] = ""
    """What is wrong and what to do."""
    since: str = Field(json_schema_extra={"format": "date-time"})
    """From when no new pod came to the card."""
    last_seen: str = Field(json_schema_extra={"format": "date-time"})
    """When something new was seen of it last."""
    quiet_since: Time = ""
    """From when nothing is wrong any more; empty while the driver still reports it."""
    quiet_seconds: int = 0
    """How long that has to last until the card returns; twice as long with every relapse."""
    relapses: int = 0
    """How often it fell sick again within a day after it had returned."""
    cleared: Time = ""
    """When the card returned; empty while it is sick."""
    cleared_by: ClearedBy | None = None


class PodShare(ApiModel):
    """What one container holds of a card, by the kubelet's books."""

    namespace: Word
    name: Annotated[str, bounded(bounds.text(bounds.NAME))]
    uid: Annotated[str, bounded(bounds.text(bounds.UID))]
    container: Word
    units: int
    used_memory: Amount = "0"
    orphaned: bool = Field(
        default=False,
        description="The API server does not have this pod among those that run: it was deleted by force, or "
        "has just ended. The kubelet still keeps its units.",
    )


class CardStatus(ApiModel):
    """One card. Programs name it by UUID; the index is for people."""

    index: int
    uuid: CardUuid
    model: Annotated[str, bounded(bounds.text(bounds.MODEL))] = ""
    memory: Amount
    first_unit: int | None = Field(
        default=None,
        description="Number of the card's first unit: with memoryUnit and memory it says what every unit ID "
        "of the card means. The plugin writes it before it offers the units to the kubelet.",
    )
    units: int
    allocated_units: int = 0
    used_memory: Amount = "0"
    compute_score: int = 0
    numa_node: int = 0
    link_group: int | None = Field(
        default=None,
        description="Cards of the same NUMA node with the same number are linked directly, for example by"
        " NVLink. Absent when unknown.",
    )
    health: Health = Health.HEALTHY
    health_reason: Annotated[str, bounded(bounds.text(bounds.HEALTH_REASON))] = ""
    cordoned: bool = Field(
        default=False,
        description="Whether no new pod comes to it, because people said so by the annotation"
        " gpushare.io/cordon of this object. Pods that have units of it stay.",
    )
    lock: Word = Field(
        default="",
        description="In mode Mixed what the card serves now: Memory, Slices or Exclusive; units are of that."
        " Empty while nobody has anything of it: then units are of memory.",
    )
    offers: dict[str, int] = Field(
        default_factory=dict,
        description="In mode Mixed: units of memory, slices and whole cards that it offers when it is free.",
        json_schema_extra={"maxProperties": bounds.RESOURCES},
    )
    pods: list[PodShare] = Field(default_factory=list, json_schema_extra=bounds.items(bounds.SHARES))


class ResourceTotals(ApiModel):
    """What a node shares of one class."""

    resource: Word
    total: int
    allocated: int = 0


_BY_UUID = {
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["uuid"],
    **bounds.items(bounds.CARDS),
}


class NodeStatus(ApiModel):
    """What the plugin found and gave out."""

    observed_generation: int = 0
    plugin_version: Word = ""
    memory_unit: Unit = Field(
        default="", description="The unit in force; differs from spec while UnitChangeBlocked."
    )
    dialect: Word = Field(
        default="",
        description="Whose names the units go by; differs from spec while UnitChangeBlocked. The plugin "
        "writes it before it offers them to the kubelet. Empty: gpushare.io.",
    )
    summary: Annotated[str, bounded(bounds.text(bounds.SUMMARY))] = Field(
        default="", description="Allocated/total units of each card, in order of index."
    )
    card_summaries: list[Annotated[str, bounded(bounds.text(bounds.CARD_SUMMARY))]] = Field(
        default_factory=list,
        description="A line for each card, in order of index; what kubectl describe shows first.",
        json_schema_extra=bounds.items(bounds.CARDS),
    )
    conditions: list[Condition] = Field(
        default_factory=list,
        json_schema_extra=CONDITION_LIST,
    )
    units: UnitTotals = Field(default_factory=UnitTotals)
    memory: MemoryTotals = Field(default_factory=MemoryTotals)
    resources: list[ResourceTotals] = Field(
        default_factory=list,
        description="In mode Mixed: of memory, slice and card, what cards offer that are free or serve it.",
        json_schema_extra=bounds.items(bounds.RESOURCES),
    )
    cards: list[CardStatus] = Field(
        default_factory=list,
        json_schema_extra=_BY_UUID,
    )
    faults: list[CardFault] = Field(
        default_factory=list,
        description="Of cards that are sick, or were within a day. The plugin goes on from here when it is"
        " restarted.",
        json_schema_extra=_BY_UUID,
    )


class GPUShareNode(ApiModel):
    """The cards of one node and who has what on them. Cluster-scoped, named like the node."""

    metadata: ObjectMeta
    spec: NodeSpec
    status: NodeStatus = Field(default_factory=NodeStatus)
