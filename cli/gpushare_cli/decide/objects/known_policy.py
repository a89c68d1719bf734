"""A GPUSharePolicy as people ask about it: which nodes it means, in which words, and what came of it."""

from collections.abc import Mapping

from msgspec import Struct, field

from gpushare_cli.decide.objects.share_node import ObservedCondition
from gpushare_core.api.enums import Backend, DialectName, Mode


class KnownMeta(Struct, rename="camel"):
    name: str
    generation: int = 0
    deletion_timestamp: str | None = None


class KnownSelector(Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[object] | None = None


class KnownRule(Struct, rename="camel"):
    """Source: ``NodeRule`` of ``gpushare_core.api.policy``."""

    names: list[str] | None = None
    selector: KnownSelector | None = None
    mode: str = Mode.MEMORY

    def may_match(self, name: str, labels: Mapping[str, str]) -> bool:
        """Returns whether it selects the node; of a selector with expressions True where its labels match."""
        if self.names is not None:
            return name in self.names
        asked = (self.selector.match_labels if self.selector else None) or {}
        return all(labels.get(key) == value for key, value in asked.items())


class KnownScheduler(Struct):
    backend: str = Backend.KUBE_SCHEDULER


class KnownSpec(Struct, rename="camel"):
    memory_unit: str = "1Gi"
    dialect: str = DialectName.GPUSHARE
    nodes: list[KnownRule] | None = None
    scheduler: KnownScheduler = field(default_factory=KnownScheduler)


class KnownStatus(Struct, rename="camel"):
    observed_generation: int = 0
    backend: str = ""
    conditions: list[ObservedCondition] | None = None


class KnownPolicy(Struct):
    """Of any version: words that this version does not know stay text."""

    metadata: KnownMeta
    spec: KnownSpec = field(default_factory=KnownSpec)
    status: KnownStatus = field(default_factory=KnownStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def backend(self) -> str:
        """The one in force, else the one that is asked for."""
        return self.status.backend or self.spec.scheduler.backend

    def condition(self, type_: str) -> ObservedCondition | None:
        conditions = self.status.conditions or ()
        return next((condition for condition in conditions if condition.type == type_), None)
