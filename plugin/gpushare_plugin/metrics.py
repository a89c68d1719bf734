"""What Prometheus reads of the plugin: its node and cards, the kubelet's calls, how the process is doing."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Histogram

from gpushare_core.api.enums import MeasurementScope
from gpushare_core.api.share_node import NodeSpec, NodeStatus
from gpushare_core.process.metrics import FAST_SECONDS, WATCH_LISTED, Gauge, Sample, SnapshotCollector
from gpushare_plugin.decide.isolation.node_isolation import Findings
from gpushare_plugin.decide.report.figures import (
    NODE_GAUGES,
    card_figures,
    isolation_figures,
    status_figures,
    use_figures,
)
from gpushare_plugin.decide.use.container_use import MeasuredUse
from gpushare_plugin.devices.card import PhysicalCard
from gpushare_plugin.kubelet.device_plugin import (
    ALLOCATE,
    DEFECT,
    PREFERRED_ALLOCATION,
    REFUSALS,
    KubeletRequest,
)

REGISTERED = Gauge(
    "gpushare_plugin_registered", "1 if the plugin is registered with the kubelet, else 0.", ("node",)
)
ASSIGNMENTS_AGE = Gauge(
    "gpushare_plugin_books_age_seconds", "Time since the plugin last read the kubelet's records.", ("node",)
)
PROCESS_GAUGES = (REGISTERED, ASSIGNMENTS_AGE, WATCH_LISTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessState:
    node: str
    cards: Sequence[PhysicalCard]
    spec: NodeSpec | None
    """None where the node is not shared."""
    status: NodeStatus | None
    """None where ``spec`` is."""
    measured: MeasuredUse | None
    isolated: Findings = ()
    """Of containers that were given isolation."""
    listed: Mapping[str, bool]
    """Collection -> whether it has been listed."""
    registered: bool
    assignments_age: float
    """Seconds."""


class PluginMetrics:
    """Shows what ``read`` returns, and counts calls."""

    def __init__(self, registry: CollectorRegistry, read: Callable[[], ProcessState]) -> None:
        self._seconds = Histogram(
            "gpushare_plugin_kubelet_call_duration_seconds",
            "Duration of the kubelet's calls for units.",
            ["verb"],
            buckets=FAST_SECONDS,
            registry=registry,
        )
        self._refusals = Counter(
            "gpushare_plugin_kubelet_refusals",
            "Calls of the kubelet that the plugin refused.",
            ["verb", "reason"],
            registry=registry,
        )
        for verb in (PREFERRED_ALLOCATION, ALLOCATE):  # from zero: what appears with 1 shows no increase
            self._seconds.labels(verb)
            for reason in (*REFUSALS.values(), DEFECT):
                self._refusals.labels(verb, reason)
        registry.register(SnapshotCollector((*NODE_GAUGES, *PROCESS_GAUGES), lambda: figures(read())))

    def called(self, call: KubeletRequest) -> None:
        self._seconds.labels(call.verb).observe(call.seconds)
        if call.refusal:
            self._refusals.labels(call.verb, call.refusal).inc()


def figures(state: ProcessState) -> Iterator[Sample]:
    yield REGISTERED.at(state.registered, state.node)
    yield ASSIGNMENTS_AGE.at(state.assignments_age, state.node)
    yield from (WATCH_LISTED.at(listed, collection) for collection, listed in state.listed.items())
    yield from card_figures(state.node, state.cards)
    if state.measured and state.spec and state.spec.measurement.scope is not MeasurementScope.OFF:
        yield from use_figures(state.node, state.measured)
    yield from isolation_figures(state.node, state.isolated)
    if state.spec and state.status:
        yield from status_figures(state.node, state.spec, state.status)
