"""A GPUShareNode as people ask about it: all that it says of cards, holders and conditions."""

from collections.abc import Iterable

from msgspec import Struct, field

from gpushare_core.api.enums import OnExcess
from gpushare_core.api.share_node import LenientCard, LenientIsolation, LenientMeta, LenientShare, LenientSpec


class ObservedCondition(Struct, frozen=True, kw_only=True, rename="camel"):
    """Of a GPUSharePolicy or a GPUShareNode. Source: ``metav1.Condition``."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: str = ""


def condition_of(conditions: Iterable[ObservedCondition] | None, type_: str) -> ObservedCondition | None:
    return next((condition for condition in conditions or () if condition.type == type_), None)


class ObservedShare(LenientShare, rename="camel"):
    """What one container holds of a card."""

    used_memory: str = "0"
    """A quantity; ``0`` where it is not measured as well."""
    isolation: str = ""
    exceeded_since: str = ""


class ObservedCard(LenientCard, rename="camel", kw_only=True):
    model: str = ""
    used_memory: str = "0"
    health_reason: str = ""
    pods: list[ObservedShare] | None = None  # type: ignore[assignment]  # decoded, never assigned to


class CardFaultText(Struct, rename="camel"):
    """Why a card is sick, or was."""

    uuid: str
    reason: str = ""
    message: str = ""
    since: str = ""
    last_seen: str = ""
    cleared: str = ""


class ShareNodeMeta(LenientMeta, rename="camel"):
    annotations: dict[str, str] | None = None
    labels: dict[str, str] | None = None


class MeasurementScopeText(Struct):
    scope: str = ""


class IsolationText(LenientIsolation, rename="camel"):
    """What a policy asks to be done about containers that take more memory than they asked for."""

    on_excess: str = OnExcess.REPORT
    grace_seconds: int = 0

    @property
    def evicts(self) -> bool:
        return self.on_excess == OnExcess.EVICT


class ShareNodeSpec(LenientSpec, rename="camel"):
    policy: str = ""
    reserved_memory: str = "0"
    """A quantity: so much of each card is not shared."""
    measurement: MeasurementScopeText = field(default_factory=MeasurementScopeText)
    isolation: IsolationText = field(default_factory=IsolationText)


class ShareNodeStatus(Struct, rename="camel"):
    observed_generation: int = 0
    plugin_version: str = ""
    memory_unit: str = ""
    dialect: str = ""
    isolation: str = ""
    conditions: list[ObservedCondition] | None = None
    cards: list[ObservedCard] | None = None
    faults: list[CardFaultText] | None = None


class ObservedShareNode(Struct):
    """Of any version: words that this version does not know stay text."""

    metadata: ShareNodeMeta
    spec: ShareNodeSpec = field(default_factory=ShareNodeSpec)
    status: ShareNodeStatus = field(default_factory=ShareNodeStatus)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def cards(self) -> list[ObservedCard]:
        return self.status.cards or []

    def condition(self, type_: str) -> ObservedCondition | None:
        return condition_of(self.status.conditions, type_)
