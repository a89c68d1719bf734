"""A GPUSharePolicy as people ask about it: lenient, as a policy of another version may be."""

from collections.abc import Iterable

from msgspec import Struct, field

from gpushare_cli.decide.objects.share_node import IsolationText, ObservedCondition, condition_of
from gpushare_core.api.enums import Backend, Engine


class PolicyMeta(Struct, rename="camel"):
    name: str
    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class NodeSelectorText(Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[dict[str, object]] | None = None


class NodeRuleText(Struct, rename="camel"):
    """An entry of ``spec.nodes``: which nodes, and how they share."""

    names: list[str] | None = None
    selector: NodeSelectorText | None = None
    mode: str = ""
    slices_per_card: int | None = None
    reserved_memory: str = "0"
    isolation: IsolationText = field(default_factory=IsolationText)


class PlacementText(Struct, rename="camel"):
    strategy: str = ""
    preemption: str = ""


class SchedulerText(Struct, rename="camel"):
    backend: str = ""
    engine: str = ""


class PolicySpecText(Struct, rename="camel"):
    memory_unit: str = ""
    dialect: str = ""
    unit_change: str = ""
    nodes: list[NodeRuleText] | None = None
    placement: PlacementText = field(default_factory=PlacementText)
    scheduler: SchedulerText = field(default_factory=SchedulerText)


class NodeCounts(Struct, rename="camel"):
    enabled: int = 0
    ready: int = 0


class CardCounts(Struct, rename="camel"):
    total: int = 0
    healthy: int = 0
    summary: str = ""


class UnitCounts(Struct, rename="camel"):
    total: int = 0
    allocated: int = 0
    unit: str = ""
    summary: str = ""


class MemoryAmounts(Struct, rename="camel"):
    """Quantities."""

    total: str = "0"
    allocated: str = "0"
    used: str = "0"


class VersionTexts(Struct, rename="camel"):
    """Several versions of one program are one text: ``0.2.0 (5), 0.1.0 (3)``."""

    operator: str = ""
    plugin: str = ""
    extender: str = ""
    hostctl: str = ""


class PolicyStatusText(Struct, rename="camel"):
    observed_generation: int = 0
    backend: str = ""
    engine: str = ""
    """Plugin or Extender; empty: none of ours, none yet, or an operator that knows only Extender."""
    conditions: list[ObservedCondition] | None = None
    nodes: NodeCounts = field(default_factory=NodeCounts)
    cards: CardCounts = field(default_factory=CardCounts)
    units: UnitCounts = field(default_factory=UnitCounts)
    memory: MemoryAmounts = field(default_factory=MemoryAmounts)
    versions: VersionTexts = field(default_factory=VersionTexts)


class ObservedPolicy(Struct, rename="camel"):
    metadata: PolicyMeta
    spec: PolicySpecText = field(default_factory=PolicySpecText)
    status: PolicyStatusText = field(default_factory=PolicyStatusText)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_seen(self) -> bool:
        """Whether the operator has seen the spec as it is now: else the status is of an earlier one."""
        return self.status.observed_generation >= self.metadata.generation

    def condition(self, type_: str) -> ObservedCondition | None:
        return condition_of(self.status.conditions, type_)


def placing_engine(policies: Iterable[ObservedPolicy]) -> Engine | None:
    """Returns the engine that places pods, which all policies share; None where none of ours does, or where
    they do not agree, as for a moment during a change."""
    found = {_engine(policy.status) for policy in policies} - {None}
    return found.pop() if len(found) == 1 else None


def _engine(status: PolicyStatusText) -> Engine | None:
    if status.engine:
        return Engine.PLUGIN if status.engine == Engine.PLUGIN else Engine.EXTENDER
    return None if status.backend in ("", Backend.VOLCANO) else Engine.EXTENDER
