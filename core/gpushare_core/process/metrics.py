"""Metrics of a process: gauges read from a snapshot, in a registry that is passed in."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from gpushare_core.process.version import VERSION
from gpushare_core.text.printable import printable

PATH = "/metrics"
"""On the health port of every program, beside the probes."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

FAST_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Buckets of durations: a filter takes less than a millisecond, a bind during an outage seconds."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """A figure that is read when Prometheus asks.

    Labels have few values, known in advance or from the configuration: never a pod, never a message.
    """

    name: str
    documentation: str
    labels: tuple[str, ...] = ()

    def at(self, value: float, *labels: str) -> "Sample":
        """Returns ``value`` for ``labels``, in the order of their names, made printable.

        Raises:
            ValueError: their number is wrong.
        """
        if len(labels) != len(self.labels):
            raise ValueError(f"{self.name} has the labels {self.labels}, not {len(labels)}")
        return Sample(self, tuple(map(printable, labels)), float(value))


@dataclass(frozen=True, slots=True)
class Sample:
    """One figure of a gauge."""

    gauge: Gauge
    labels: tuple[str, ...]
    value: float


class SnapshotCollector(Collector):
    """Shows the samples of ``gauges`` that ``read`` returns, all of one moment. ``read`` must be cheap."""

    def __init__(self, gauges: Sequence[Gauge], read: Callable[[], Iterable[Sample]]) -> None:
        self._gauges = gauges
        self._read = read

    def describe(self) -> Iterable[Metric]:
        """Returns the names alone: there are no samples yet when a collector is registered."""
        return self._families().values()

    def collect(self) -> Iterable[Metric]:
        families = self._families()
        for sample in self._read():
            families[sample.gauge].add_metric(sample.labels, sample.value)
        return families.values()

    def _families(self) -> dict[Gauge, GaugeMetricFamily]:
        return {
            gauge: GaugeMetricFamily(gauge.name, gauge.documentation, labels=gauge.labels)
            for gauge in self._gauges
        }


WATCH_LISTED = Gauge(
    "gpushare_watch_listed", "1 once the collection has been listed completely, else 0.", ("collection",)
)
"""Of the programs with watches of their own."""
BUILD = Gauge("gpushare_build_info", "Always 1; the labels name program and version.", ("program", "version"))


def new_registry(program: str) -> CollectorRegistry:
    """Returns a registry with the figures of every process: version, memory, CPU time and open files."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(SnapshotCollector([BUILD], lambda: [BUILD.at(1, program, VERSION)]))
    return registry


def exposition(registry: CollectorRegistry) -> bytes:
    """Returns the registry as ``CONTENT_TYPE``."""
    return generate_latest(_WithoutCreationTimes(registry))


class _WithoutCreationTimes(Collector):
    """They are a third more series, and nobody uses them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
