"""The extender's routes with all that they need, for tests that have a ledger and a binder."""

from prometheus_client import CollectorRegistry

from gpushare_extender.bind.binder import Binder
from gpushare_extender.decide.attempts import SchedulingAttempts
from gpushare_extender.decide.preemption.ending_pods import EndingPods
from gpushare_extender.extender import NOMINATION_SECONDS
from gpushare_extender.preempt.node_pods import NodePodReader
from gpushare_extender.preempt.nominations import Nominations
from gpushare_extender.preempt.scheduler_victims import SchedulerVictims
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.metrics import ExtenderMetrics
from gpushare_extender.verbs.server import ExtenderApi


def extender_api(binder: Binder, health: HealthApi, metrics: ExtenderMetrics | None = None) -> ExtenderApi:
    ledger, clock = binder.ledger, binder.timing.clock
    attempts, ending = SchedulingAttempts(), EndingPods()
    victims = SchedulerVictims(ledger, NodePodReader(binder.client), attempts.preemptors, ending, clock)
    reader = NodePodReader(binder.client, NOMINATION_SECONDS)
    return ExtenderApi(
        ledger=ledger,
        binder=binder,
        health=health,
        attempts=attempts,
        victims=victims,
        nominations=Nominations(ledger, reader, ending, clock),
        metrics=metrics or ExtenderMetrics(CollectorRegistry()),
    )
