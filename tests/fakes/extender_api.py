"""The extender's routes with all that they need, for tests that have a ledger and a binder."""

from prometheus_client import CollectorRegistry

from gpushare_extender.bind.binder import Binder
from gpushare_extender.decide.attempts import SchedulingAttempts
from gpushare_extender.decide.preemption.ending_pods import EndingPods
from gpushare_extender.extender import connect_api
from gpushare_extender.verbs.health import HealthApi
from gpushare_extender.verbs.metrics import ExtenderMetrics
from gpushare_extender.verbs.server import ExtenderApi


def extender_api(binder: Binder, health: HealthApi, metrics: ExtenderMetrics | None = None) -> ExtenderApi:
    metrics = metrics or ExtenderMetrics(CollectorRegistry())
    return connect_api(binder, health, metrics, SchedulingAttempts(), EndingPods())
