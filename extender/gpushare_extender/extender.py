"""One extender: its parts, how they are connected, and the tasks that run as long as it does."""

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.lease_holder import NotHeldError
from gpushare_core.process.metrics import new_registry
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.listener import LedgerListener
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_extender import PROGRAM
from gpushare_extender.arguments import Options
from gpushare_extender.audit.difference_report import DifferenceReport
from gpushare_extender.audit.ledger_audit import ChangedNodes, LastingDifferences, LedgerAudit, in_order
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.lease import BindLease
from gpushare_extender.bind.node_pauses import NodePauses
from gpushare_extender.bind.stale_reservations import StaleReservations
from gpushare_extender.cluster.activation import PodActivation, activate_others
from gpushare_extender.cluster.log_levels import LogLevels
from gpushare_extender.cluster.other_schedulers import OtherSchedulers
from gpushare_extender.cluster.paced_pods import PacedPods
from gpushare_extender.cluster.scheduler_calls import SchedulerCallReport
from gpushare_extender.cluster.unserved_pods import UnservedPods
from gpushare_extender.cluster.watchers import (
    Watch,
    WatchHealth,
    free_unreleased_pods,
    watch_pods,
    watch_share_nodes,
)
from gpushare_extender.decide.attempts import SchedulingAttempts
from gpushare_extender.decide.preemption.ending_pods import EndingPods
from gpushare_extender.evictions.node_pods import NodePodReader
from gpushare_extender.evictions.nominations import Nominations
from gpushare_extender.evictions.preemptions import Preemptions
from gpushare_extender.evictions.scheduler_victims import SchedulerVictims
from gpushare_extender.transport.listener import PROTOCOLS
from gpushare_extender.transport.tls import ServerTls
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.inspection import NOTHING_DIFFERS, Differing
from gpushare_extender.verbs.metrics import ExtenderMetrics, show_figures
from gpushare_extender.verbs.server import ExtenderApi

DRAIN_SECONDS = 15.0
"""For binds under way at the end; half of the kubelet's default grace period."""

NOMINATION_SECONDS = 1.0
"""For reading the pods of a nominated node: kube-scheduler waits for the filter's response meanwhile."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LedgerChanges(LedgerListener):
    activation: PodActivation
    nodes: ChangedNodes

    def has_room(self, name: str, amount: int) -> None:
        self.activation.has_room(name, amount)

    def card_has_room(self) -> None:
        self.activation.card_has_room()

    def fits(self, uid: str) -> None:
        self.activation.fits(uid)

    def node_changed(self, node: str) -> None:
        self.nodes.node_changed(node)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extender:
    api: ExtenderApi
    lease: BindLease
    pauses: NodePauses
    activation: PodActivation
    preemptions: Preemptions
    calls: SchedulerCallReport
    audit: LedgerAudit
    report: DifferenceReport
    watches: Sequence[Watch]
    unserved: UnservedPods
    others: OtherSchedulers

    @classmethod
    def create(cls, client: KubeClient, options: Options) -> "Extender":
        timing, attempts, ending = BindTiming(), SchedulingAttempts(), EndingPods()
        identified, found = (client, options.namespace, options.identity), LastingDifferences()
        activation = PodActivation(client, options.namespace, attempts.unschedulable, timing.now)
        changes = ChangedNodes(timing.clock)
        ledger = Ledger(LedgerChanges(activation, changes))
        report = DifferenceReport(*identified, partial(in_order, found), timing.now)
        pauses = NodePauses(client, ledger, timing)
        watches = _watches(client, ledger, pauses, LogLevels(options.log_level))
        calls = SchedulerCallReport(*identified, timing.now, timing.clock)
        registry = new_registry(PROGRAM)
        metrics = ExtenderMetrics(registry)
        lease = BindLease(*identified, partial(_read_again, watches), lambda: binder.may_be_binding())
        bound = partial(_note_bound, attempts, pauses)
        binder = Binder(client, ledger, lease.hold, timing, bound=bound, ended=metrics.bind_ended)
        health = _health(watches, registry, options)
        api = connect_api(binder, health, metrics, attempts, ending, called=calls.called, differing=found)
        show_figures(
            registry,
            ledger,
            watches=health.watches,
            binds_under_way=lambda: binder.under_way,
            differing=found,
        )
        return cls(
            api=api,
            lease=lease,
            pauses=pauses,
            activation=activation,
            preemptions=_preemptions(api, lease, activation, ending),
            calls=calls,
            audit=LedgerAudit(ledger, changes, report.changed, found=found),
            report=report,
            watches=watches,
            unserved=UnservedPods(client, ledger, PacedPods(client)),
            others=OtherSchedulers(client, ledger, options.namespace, attempts.schedulers, PacedPods(client)),
        )

    def tasks(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Returns what runs as long as the extender does."""
        binder, ledger, timing = self.api.binder, self.api.ledger, self.api.binder.timing
        return (
            *(watch.run() for watch in self.watches),
            self.lease.keep(),
            self.pauses.end_in_time(),
            free_unreleased_pods(ledger),
            self.activation.run(),
            activate_others(self.activation, self.api.attempts.offered, timing.clock, timing.sleep),
            self.preemptions.run(),
            self.unserved.run(),
            self.others.run(),
            self.calls.run(),
            self.audit.run(),
            self.report.run(),
            *([tls.end_when_gone()] if (tls := self.api.health.tls) else []),
            StaleReservations(binder.client, ledger, timing).release(),
        )

    async def finish(self) -> None:
        """Waits for the binds under way to end; only then may another extender bind at once."""
        left = await self.api.binder.drain(DRAIN_SECONDS)
        await self.report.withdraw()
        if self.lease.in_use():
            _log.warning(
                "the next extender has to wait until the Lease has expired: %d binds may be under way",
                max(left, 1),
            )
            return
        try:
            await self.lease.release()
        except NotHeldError as error:
            _log.warning("the next extender has to wait until the Lease has expired: %s", error)


def connect_api(
    binder: Binder,
    health: HealthApi,
    metrics: ExtenderMetrics,
    attempts: SchedulingAttempts,
    ending: EndingPods,
    *,
    called: Callable[[int], None] = lambda _: None,
    differing: Differing = NOTHING_DIFFERS,
) -> ExtenderApi:
    """Connects the routes with what handles preemption, for the binder's ledger and API server."""
    client, ledger, clock = binder.client, binder.ledger, binder.timing.clock
    return ExtenderApi(
        ledger=ledger,
        binder=binder,
        health=health,
        attempts=attempts,
        victims=SchedulerVictims(ledger, NodePodReader(client), attempts.preemptors, ending, clock),
        nominations=Nominations(ledger, NodePodReader(client, NOMINATION_SECONDS), ending, clock),
        metrics=metrics,
        called=called,
        differing=differing,
    )


def freeze_gc() -> None:
    """Excludes all present objects from garbage collection: at 5,000 nodes each collection goes through the
    ledger for a tenth of a second, keeps kube-scheduler waiting, and finds nothing, as nothing in the ledger
    refers to itself.

    Objects that were in use when it was called before, such as connections, are collected now."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()


async def _read_again(watches: Iterable[Watch]) -> None:
    await asyncio.gather(*(watch.read_again() for watch in watches))


def _watches(
    client: KubeClient, ledger: Ledger, pauses: NodePauses, levels: LogLevels
) -> tuple[Watch, Watch]:
    pods = WatchHealth("pods", settled=freeze_gc)
    share_nodes = WatchHealth("gpusharenodes", settled=freeze_gc)
    return (
        Watch(lambda: watch_pods(client, ledger, pods, pauses.gone), pods),
        Watch(lambda: watch_share_nodes(client, ledger, share_nodes, pauses.reported, levels), share_nodes),
    )


def _note_bound(attempts: SchedulingAttempts, pauses: NodePauses, pod: PodReference, node: str) -> None:
    attempts.offered.settled(pod.uid)
    pauses.bound(pod, node)


def _health(watches: Iterable[Watch], registry: CollectorRegistry, options: Options) -> HealthApi:
    return HealthApi(
        tuple(watch.health for watch in watches),
        ServerTls(options.tls, protocols=PROTOCOLS) if options.tls else None,
        former=frozenset(map(str, options.also)),
        registry=registry,
    )


def _preemptions(
    api: ExtenderApi, lease: BindLease, activation: PodActivation, ending: EndingPods
) -> Preemptions:
    return Preemptions(
        client=api.binder.client,
        ledger=api.ledger,
        preemptors=api.attempts.preemptors,
        ending=ending,
        permit=lease.hold,
        would_fit=activation.fits,
        has_seen_all=api.attempts.sampled.has_ended,
        timing=api.binder.timing,
        attempted=api.metrics.eviction_attempted,
    )
