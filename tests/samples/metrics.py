"""All that the three programs show, as a dashboard or a rule may use it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from gpushare_core.process.metrics import BUILD, WATCH_LISTED, Gauge, new_registry
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.decide.figures import LEDGER_GAUGES
from gpushare_extender.verbs import metrics as extender
from gpushare_operator.process import metrics as operator
from gpushare_operator.status.policy_metrics import POLICY_GAUGES
from gpushare_operator.work_queue import WorkQueue
from gpushare_plugin import metrics as plugin
from gpushare_plugin.decide.report.figures import NODE_GAUGES

GAUGES: tuple[Gauge, ...] = (
    BUILD,
    WATCH_LISTED,
    *NODE_GAUGES,
    *plugin.PROCESS_GAUGES,
    *LEDGER_GAUGES,
    extender.BINDS,
    extender.SILENCE,
    extender.WAITING,
    extender.MAX_WAIT,
    *POLICY_GAUGES,
    *operator.QUEUE_GAUGES,
)
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


@dataclass(frozen=True)
class Shown:
    """One name that Prometheus stores."""

    kind: str
    labels: frozenset[str]
    values: dict[str, set[str]] = field(default_factory=dict)
    """Label -> all its values, where they are known beforehand."""


def registries() -> Iterator[CollectorRegistry]:
    """Yields those of operator, extender and plugin, with nothing happening yet."""

    def nothing() -> plugin.ProcessState:
        return plugin.ProcessState(
            node="n",
            cards=(),
            spec=None,
            status=None,
            measured=None,
            listed={},
            registered=False,
            assignments_age=0.0,
        )

    registry = new_registry("gpushare-plugin")
    plugin.PluginMetrics(registry, nothing)
    yield registry
    registry = new_registry("gpushare-extender")
    extender.ExtenderMetrics(registry)
    extender.show_figures(registry, Ledger(), watches=(), binds_under_way=lambda: 0)
    yield registry
    registry = new_registry("gpushare-operator")
    operator.OperatorMetrics(registry)
    operator.show_figures(registry, WorkQueue(clock=lambda: 0.0), lambda: (), is_at_work=lambda: True)
    yield registry


def all_shown() -> dict[str, Shown]:
    """Returns every name with its labels."""
    return {
        name: shown
        for registry in registries()
        for metric in registry.collect()
        for name, shown in _of(metric)
    }


def _of(metric: Metric) -> Iterator[tuple[str, Shown]]:
    labels = next((frozenset(gauge.labels) for gauge in GAUGES if gauge.name == metric.name), None)
    values: dict[str, set[str]] = {}
    if labels is None:
        for sample in metric.samples:
            for label, value in sample.labels.items():
                values.setdefault(label, set()).add(value)
    known = labels if labels is not None else frozenset(values)
    for suffix in SUFFIXES[metric.type]:
        yield f"{metric.name}{suffix}", Shown(metric.type, known, values)
