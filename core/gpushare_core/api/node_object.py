"""GPUShareNode as the program reads and writes it that is on every node: the plugin.

The same as in ``share_node``, which the CRD is generated from, but without pydantic: that takes 10 MiB of the
plugin's 64. A test holds the two together, field by field.
"""

from typing import Annotated, Any, Self

import msgspec

from gpushare_core.api import bounds
from gpushare_core.api.enums import (
    ClearedBy,
    DialectName,
    Health,
    Injection,
    LogLevel,
    MeasurementScope,
    Mode,
    Preemption,
    Source,
    UnitChange,
)
from gpushare_core.placement.card_choice import Strategy
from gpushare_core.placement.quantity import parse_memory
from gpushare_core.text.json_object import Json

IGNORED_XIDS = (13, 31, 43, 45, 68, 109)
"""Of applications: what they do wrong harms no other one on the card."""


class NodeObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Immutable; unknown fields are ignored, so that an older program reads a newer object."""

    @classmethod
    def from_json(cls, item: Json) -> Self:
        """Returns what ``item`` says.

        Raises:
            msgspec.ValidationError: it is none.
        """
        return msgspec.convert(item, cls)

    def to_json(self) -> Json:
        """Returns it as the API server wants it: camelCase, plain JSON types, no nulls."""
        written: Json = _without_nulls(msgspec.to_builtins(self))
        return written


def _without_nulls(value: Any) -> Any:
    if type(value) is dict:
        return {
            key: _without_nulls(each) if type(each) in _NESTED else each
            for key, each in value.items()
            if each is not None
        }
    if type(value) is list:
        return [_without_nulls(each) if type(each) in _NESTED else each for each in value]
    return value


_NESTED = (dict, list)
"""What ``msgspec`` makes of objects and lists: most values are neither, and a call for each would show."""


class ObjectMeta(NodeObject, frozen=True, kw_only=True):
    name: str
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    annotations: dict[str, str] = {}


def _bounded(schema: Json) -> msgspec.Meta:
    """Returns what the CRD says, and whoever reads an object does not ask for: see ``bounds``."""
    return msgspec.Meta(extra_json_schema=schema)


_Word = Annotated[str, _bounded(bounds.text(bounds.WORD))]
_Unit = Annotated[str, _bounded(bounds.text(bounds.UNIT))]
_Amount = Annotated[str, _bounded(bounds.text(bounds.QUANTITY))]
_Time = Annotated[str, _bounded(bounds.text(bounds.TIME))]
_CardUuid = Annotated[str, _bounded(bounds.UUID)]


class Condition(NodeObject, frozen=True, kw_only=True):
    type: Annotated[str, _bounded(bounds.text(316, bounds.CONDITION_TYPE))]
    status: str
    reason: Annotated[str, _bounded(bounds.text(1024, bounds.CONDITION_REASON))]
    message: Annotated[str, _bounded(bounds.MESSAGE)]
    last_transition_time: str
    observed_generation: int = 0


_Number = Annotated[int, msgspec.Meta(ge=0, le=63)]
_Xid = Annotated[int, msgspec.Meta(ge=0, le=65535)]
_Quantity = Annotated[str, msgspec.Meta(max_length=20)]


class SimulatedCards(NodeObject, frozen=True, kw_only=True):
    count: Annotated[int, msgspec.Meta(ge=1, le=64)]
    memory: _Quantity
    model: Annotated[str, msgspec.Meta(max_length=63)] = "Sim"
    compute_score: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 100
    numa_node: _Number = 0
    link_group: _Number | None = None

    def __post_init__(self) -> None:
        parse_memory(self.memory)


class CardHealth(NodeObject, frozen=True, kw_only=True):
    ignored_xids: Annotated[list[_Xid], msgspec.Meta(max_length=128)] = msgspec.field(
        default_factory=lambda: [*IGNORED_XIDS]
    )
    quiet_seconds: Annotated[int, msgspec.Meta(ge=1, le=86400)] = 600


class Devices(NodeObject, frozen=True, kw_only=True):
    source: Source = Source.NVML
    simulated: Annotated[list[SimulatedCards], msgspec.Meta(max_length=16)] = []
    inventory_path: Annotated[str, msgspec.Meta(max_length=253)] = "/etc/gpushare/inventory.yaml"
    injection: Injection = Injection.ENVIRONMENT
    cdi_kind: Annotated[str, msgspec.Meta(max_length=127)] = "nvidia.com/gpu"
    health: CardHealth = msgspec.field(default_factory=CardHealth)


class Measurement(NodeObject, frozen=True, kw_only=True):
    scope: MeasurementScope = MeasurementScope.CARDS
    interval_seconds: Annotated[int, msgspec.Meta(ge=10, le=3600)] = 30


class NodeSpec(NodeObject, frozen=True, kw_only=True):
    policy: str
    mode: Mode
    memory_unit: str
    dialect: DialectName = DialectName.GPUSHARE
    strategy: Strategy = Strategy.BINPACK
    preemption: Preemption = Preemption.ENABLED
    candidates: int | None = None
    slices_per_card: int | None = None
    unit_change: UnitChange | None = None
    reserved_memory: _Quantity = "0"
    devices: Devices = msgspec.field(default_factory=Devices)
    log_level: LogLevel = LogLevel.INFO
    measurement: Measurement = msgspec.field(default_factory=Measurement)
    extender_log_level: LogLevel | None = None

    def __post_init__(self) -> None:
        parse_memory(self.reserved_memory)


class CardFault(NodeObject, frozen=True, kw_only=True):
    uuid: _CardUuid
    reason: _Word
    message: Annotated[str, _bounded(bounds.text(bounds.FAULT_MESSAGE))] = ""
    since: str
    last_seen: str
    quiet_since: _Time = ""
    quiet_seconds: int = 0
    relapses: int = 0
    cleared: _Time = ""
    cleared_by: ClearedBy | None = None


class PodShare(NodeObject, frozen=True, kw_only=True):
    namespace: _Word
    name: Annotated[str, _bounded(bounds.text(bounds.NAME))]
    uid: Annotated[str, _bounded(bounds.text(bounds.UID))]
    container: _Word
    units: int
    used_memory: _Amount = "0"
    orphaned: bool = False


class CardStatus(NodeObject, frozen=True, kw_only=True):
    index: int
    uuid: _CardUuid
    model: Annotated[str, _bounded(bounds.text(bounds.MODEL))] = ""
    memory: _Amount
    first_unit: int | None = None
    units: int
    allocated_units: int = 0
    used_memory: _Amount = "0"
    compute_score: int = 0
    numa_node: int = 0
    link_group: int | None = None
    health: Health = Health.HEALTHY
    health_reason: Annotated[str, _bounded(bounds.text(bounds.HEALTH_REASON))] = ""
    cordoned: bool = False
    lock: _Word = ""
    offers: Annotated[dict[str, int], _bounded({"maxProperties": bounds.RESOURCES})] = {}
    pods: Annotated[list[PodShare], _bounded(bounds.items(bounds.SHARES))] = []


class UnitTotals(NodeObject, frozen=True, kw_only=True):
    total: int = 0
    allocated: int = 0


class MemoryTotals(NodeObject, frozen=True, kw_only=True):
    total: _Amount = "0"
    allocated: _Amount = "0"
    used: _Amount = "0"


class ResourceTotals(NodeObject, frozen=True, kw_only=True):
    resource: _Word
    total: int
    allocated: int = 0


class NodeStatus(NodeObject, frozen=True, kw_only=True):
    observed_generation: int = 0
    plugin_version: _Word = ""
    memory_unit: _Unit = ""
    dialect: _Word = ""
    summary: Annotated[str, _bounded(bounds.text(bounds.SUMMARY))] = ""
    card_summaries: Annotated[
        list[Annotated[str, _bounded(bounds.text(bounds.CARD_SUMMARY))]], _bounded(bounds.items(bounds.CARDS))
    ] = []
    conditions: Annotated[list[Condition], _bounded(bounds.items(bounds.CONDITIONS))] = []
    units: UnitTotals = msgspec.field(default_factory=UnitTotals)
    memory: MemoryTotals = msgspec.field(default_factory=MemoryTotals)
    resources: Annotated[list[ResourceTotals], _bounded(bounds.items(bounds.RESOURCES))] = []
    cards: Annotated[list[CardStatus], _bounded(bounds.items(bounds.CARDS))] = []
    faults: Annotated[list[CardFault], _bounded(bounds.items(bounds.CARDS))] = []


class GPUShareNode(NodeObject, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: NodeSpec
    status: NodeStatus = msgspec.field(default_factory=NodeStatus)
