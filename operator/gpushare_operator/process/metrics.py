"""The operator's metrics: its policies, its work, and whether watch events come."""

import time
from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram

from gpushare_core.process.metrics import FAST_SECONDS, Gauge, Sample, SnapshotCollector
from gpushare_operator.cluster.kinds import KINDS
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.evictions import EvictionResult
from gpushare_operator.reconcile import CLUSTER, RESYNC, SCHEDULERS
from gpushare_operator.status.policy_metrics import POLICY_GAUGES, policy_figures
from gpushare_operator.work_queue import Work, WorkQueue

PLANNED = Gauge("gpushare_operator_queue_keys", "Keys in the work queue, due now or later.")
FAILING = Gauge("gpushare_operator_queue_failing_keys", "Keys whose last attempt failed.")
SILENCE = Gauge(
    "gpushare_operator_queue_silence_seconds", "Time since the last sign of life of the work queue."
)
AT_WORK = Gauge("gpushare_operator_at_work", "1 if this operator holds the Lease, 0 if it stands by.")
QUEUE_GAUGES = (PLANNED, FAILING, SILENCE, AT_WORK)

POLICY_WORK = "policy"
WORK = {CLUSTER: "cluster", RESYNC: "resync", SCHEDULERS: "schedulers"}
"""Key -> kind of work; any other key is a policy's."""
DONE, FAILED = "Done", "Failed"


class OperatorMetrics:
    """Counters in ``registry``. ``clock``: monotonic seconds."""

    def __init__(self, registry: CollectorRegistry, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds = Histogram(
            "gpushare_operator_reconcile_duration_seconds",
            "Duration of a reconcile.",
            ["work"],
            buckets=FAST_SECONDS,
            registry=registry,
        )
        self._results = Counter(
            "gpushare_operator_reconciles",
            "Reconciles that ended.",
            ["work", "result"],
            registry=registry,
        )
        self._events = Counter(
            "gpushare_operator_watch_events", "Watch events received.", ["resource"], registry=registry
        )
        self._lists = Counter(
            "gpushare_operator_watch_listed_objects",
            "Objects received in lists: after the start it grows only when a watch was interrupted.",
            ["resource"],
            registry=registry,
        )
        self._evictions = Counter(
            "gpushare_operator_evictions",
            "Attempts to evict pods that use more memory than they asked for (isolation.onExcess).",
            ["result"],
            registry=registry,
        )
        self._start_from_zero()

    def _start_from_zero(self) -> None:
        """A counter that first appears with 1 shows no increase."""
        for work in (POLICY_WORK, *WORK.values()):
            self._seconds.labels(work)
            for result in (DONE, FAILED):
                self._results.labels(work, result)
        for kind in KINDS:
            self._events.labels(kind.plural)
            self._lists.labels(kind.plural)
        for outcome in EvictionResult:
            self._evictions.labels(outcome)

    def observed(self, resource: str, event: str | None) -> None:
        """``resource``: plural; ``event``: type of a watch event, None for an object in a list."""
        (self._lists if event is None else self._events).labels(resource).inc()

    def attempted(self, outcome: EvictionResult) -> None:
        """An eviction was tried."""
        self._evictions.labels(outcome).inc()

    def measured(self, work: Work) -> Work:
        async def run(key: str) -> float | None:
            kind, begun, result = WORK.get(key, POLICY_WORK), self._clock(), FAILED
            try:
                retry_after = await work(key)
                result = DONE
                return retry_after
            finally:
                self._seconds.labels(kind).observe(self._clock() - begun)
                self._results.labels(kind, result).inc()

        return run


def show_figures(
    registry: CollectorRegistry,
    queue: WorkQueue,
    policies: Callable[[], Iterable[PolicyObject]],
    *,
    is_at_work: Callable[[], bool],
) -> None:
    """Registers gauges whose values are read when Prometheus reads them."""

    def read() -> Iterator[Sample]:
        yield PLANNED.at(queue.planned)
        yield FAILING.at(queue.failing)
        yield SILENCE.at(queue.clock() - queue.last_beat if queue.is_running else 0)
        yield AT_WORK.at(is_at_work())
        yield from policy_figures(policies())

    registry.register(SnapshotCollector((*QUEUE_GAUGES, *POLICY_GAUGES), read))
