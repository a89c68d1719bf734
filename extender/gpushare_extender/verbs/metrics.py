"""The extender's metrics: how long kube-scheduler waits, what is refused, what is bound."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from types import MappingProxyType

from prometheus_client import CollectorRegistry, Counter, Histogram

from gpushare_core.process.metrics import FAST_SECONDS, WATCH_LISTED, Gauge, Sample, SnapshotCollector
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.unfit_reason import Refusal
from gpushare_extender.bind.binder import BindResult
from gpushare_extender.cluster.watchers import WatchHealth
from gpushare_extender.decide.figures import LEDGER_GAUGES, ledger_figures
from gpushare_extender.decide.waiting.waiting_pods import NO_WAITS, WaitingPods
from gpushare_extender.evictions.eviction_call import EvictionOutcome
from gpushare_extender.transport.messages import Handler, Request, Response
from gpushare_extender.verbs.inspection import NOTHING_DIFFERS, Differing

VERBS = MappingProxyType({f"/gpushare/{verb}": verb for verb in ("filter", "prioritize", "preempt", "bind")})
"""Path -> verb."""

BINDS = Gauge("gpushare_extender_binds_under_way", "Binds whose outcome is not known yet.")
DIFFERENCES = Gauge(
    "gpushare_extender_books_differences",
    "Lasting differences between ledger, annotations and GPUShareNodes.",
)
DIFFERING_NODES = Gauge("gpushare_extender_books_differing_nodes", "Nodes with such lasting differences.")
SILENCE = Gauge(
    "gpushare_watch_silence_seconds", "Time since the last sign of the API server.", ("collection",)
)
WAITING = Gauge("gpushare_extender_waiting_pods", "Pods that fitted no node at their last try.", ("reason",))
MAX_WAIT = Gauge(
    "gpushare_extender_longest_wait_seconds",
    "Longest time that a waiting pod has waited so far.",
    ("reason",),
)


class ExtenderMetrics:
    def __init__(
        self, registry: CollectorRegistry, *, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        """``clock`` is in steady seconds."""
        self._clock = clock
        self._seconds = Histogram(
            "gpushare_extender_request_duration_seconds",
            "Time to answer a request of kube-scheduler, once it has arrived in full.",
            ["verb"],
            buckets=FAST_SECONDS,
            registry=registry,
        )
        self._refusals = Counter(
            "gpushare_extender_refusals",
            "Filters that left no node, counted once for each reason.",
            ["reason"],
            registry=registry,
        )
        self._binds = Counter("gpushare_extender_binds", "Binds that ended.", ["result"], registry=registry)
        self._evictions = Counter(
            "gpushare_extender_evictions",
            "Attempts to evict a pod for one of higher priority.",
            ["result"],
            registry=registry,
        )
        self._verbs = {path: self._seconds.labels(verb) for path, verb in VERBS.items()}
        self._waiting = WaitingPods()
        registry.register(SnapshotCollector((WAITING, MAX_WAIT), self._waits))
        self._start_from_zero()

    def _start_from_zero(self) -> None:
        """Prometheus sees no increase in a series that appears with 1."""
        for refusal in Refusal:
            self._refusals.labels(refusal.value)
        for result in BindResult:
            self._binds.labels(result.value)
        for outcome in EvictionOutcome:
            self._evictions.labels(outcome.name.capitalize())

    def refused(self, uid: str, kinds: Iterable[Refusal]) -> None:
        """No node is left for the pod, for reasons of these kinds."""
        reasons = frozenset(kinds)
        self._waiting.refused(uid, reasons, now=self._clock())
        for kind in reasons:
            self._refusals.labels(kind.value).inc()

    def fits(self, uid: str) -> None:
        """A node is left for the pod."""
        self._waiting.settled(uid)

    def _waits(self) -> Iterator[Sample]:
        waits = self._waiting.by_reason(now=self._clock())
        for reason in Refusal:
            pods, longest = waits.get(reason, NO_WAITS)
            yield WAITING.at(pods, reason.value)
            yield MAX_WAIT.at(longest, reason.value)

    def bind_ended(self, result: BindResult) -> None:
        self._binds.labels(result.value).inc()

    def eviction_attempted(self, outcome: EvictionOutcome) -> None:
        self._evictions.labels(outcome.name.capitalize()).inc()

    def measured(self, handler: Handler) -> Handler:
        """Returns ``handler`` with a clock on the requests of kube-scheduler."""

        def respond(request: Request) -> Response | Awaitable[Response]:
            seconds = self._verbs.get(request.path)
            if seconds is None:
                return handler(request)
            begun = self._clock()
            response = handler(request)
            if not isinstance(response, Response):
                return self._measured_later(response, seconds, begun)
            seconds.observe(self._clock() - begun)
            return response

        return respond

    async def _measured_later(
        self, response: Awaitable[Response], seconds: Histogram, begun: float
    ) -> Response:
        try:
            return await response
        finally:
            seconds.observe(self._clock() - begun)


def show_figures(
    registry: CollectorRegistry,
    ledger: Ledger,
    *,
    watches: Iterable[WatchHealth],
    binds_under_way: Callable[[], int],
    differing: Differing = NOTHING_DIFFERS,
) -> None:
    """Registers gauges that are read from their sources whenever Prometheus asks."""

    def read() -> Iterator[Sample]:
        yield BINDS.at(binds_under_way())
        yield DIFFERENCES.at(sum(map(len, differing.values())))
        yield DIFFERING_NODES.at(len(differing))
        for watch in watches:
            yield WATCH_LISTED.at(watch.listed, watch.collection)
            yield SILENCE.at(watch.silence, watch.collection)
        yield from ledger_figures(ledger)

    registry.register(
        SnapshotCollector((BINDS, DIFFERENCES, DIFFERING_NODES, WATCH_LISTED, SILENCE, *LEDGER_GAUGES), read)
    )
