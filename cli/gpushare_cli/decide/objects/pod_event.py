"""An Event about a pod, as kube-scheduler, the kubelet and our programs write them."""

from msgspec import Struct, field


class EventSeries(Struct, rename="camel"):
    count: int = 0
    last_observed_time: str | None = None


EVICTED_FOR_MEMORY = "EvictedForMemory"
"""Reason of the operator's Event about a pod that it has evicted for its excess. Source: ``EVENT_REASONS`` of
its ``evictions.py``."""


class EventSubject(Struct):
    name: str = ""
    namespace: str = ""

    @property
    def path(self) -> str:
        return f"{self.namespace}/{self.name}"


class ObservedEvent(Struct, rename="camel"):
    """Source: ``events.k8s.io/v1`` Event. Those of older clients have the count in deprecated fields."""

    reason: str = ""
    note: str = ""
    type: str = ""
    regarding: EventSubject = field(default_factory=EventSubject)
    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    deprecated_count: int | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_first_timestamp: str | None = None
    deprecated_source: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How often it was seen."""
        return max(1, self.series.count if self.series else 0, self.deprecated_count or 0)

    @property
    def last_seen(self) -> str:
        """RFC 3339; empty where the Event does not say."""
        latest = self.series.last_observed_time if self.series else ""
        return latest or self.deprecated_last_timestamp or self.event_time or ""

    @property
    def first_seen(self) -> str:
        return self.event_time or self.deprecated_first_timestamp or self.last_seen

    @property
    def by(self) -> str:
        """The program that wrote it."""
        return self.reporting_controller or self.deprecated_source.get("component", "")
