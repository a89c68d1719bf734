"""Which scheduler backend is needed, and which is connected or taken back now. All policies share one."""

from collections.abc import Hashable
from dataclasses import replace

from gpushare_core.api.enums import Backend
from gpushare_operator.actions import Plan
from gpushare_operator.backends.backend import SchedulerBackend
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies.decisive_policy import decisive_policy, scheduler_needed
from gpushare_operator.policies.scheduler_settings import scheduler_settings


def needed_backend(snapshot: ClusterSnapshot) -> Backend | None:
    """Returns the backend that the decisive policy asks for; None when no policy needs a scheduler.

    While that policy cannot be read, the backend in force stays.
    """
    if not scheduler_needed(snapshot):
        return None
    policy = decisive_policy(snapshot)
    if policy is None or policy.spec is None:
        in_force = (backend.name for backend in BACKENDS.values() if backend.is_in_force(snapshot))
        return [*in_force][-1]
    return policy.spec.scheduler.backend


def plan_needed_backend(situation: Situation, needed: Backend) -> Plan:
    """Returns what is due now while a policy needs a scheduler.

    A backend is connected only when nothing of any other is left. A former one is taken back only for one
    that can be connected.
    """
    snapshot = situation.snapshot
    former = unneeded_backends(snapshot, needed)
    if not former:
        return BACKENDS[needed].connect(situation)
    return former[0].disconnect(situation) if BACKENDS[needed].may_be_connected(snapshot) else Plan()


def asked_connection(snapshot: ClusterSnapshot) -> Hashable:
    """Returns the same as long as policies and nodes together ask for the same connection."""
    return needed_backend(snapshot), replace(scheduler_settings(snapshot), listening=())


def is_placing_by_sums(situation: Situation) -> bool:
    """Returns whether schedulers place pods by the sums of nodes still, and will ask the extender soon. If
    connecting them has failed, nobody waits for it."""
    needed = needed_backend(situation.snapshot)
    return needed is not None and BACKENDS[needed].is_connecting(situation)


def placing_backend(snapshot: ClusterSnapshot) -> Backend | None:
    """Returns the backend that new pods are to come to; None when no policy needs one."""
    needed = needed_backend(snapshot)
    former = unneeded_backends(snapshot, needed) if needed else []
    stays = needed and former and not BACKENDS[needed].may_be_connected(snapshot)
    return former[0].name if stays else needed


def unneeded_backends(snapshot: ClusterSnapshot, needed: Backend | None) -> list[SchedulerBackend]:
    """Returns the backends other than ``needed`` of which something is left."""
    backends = BACKENDS.values()
    return [backend for backend in backends if backend.name is not needed and not backend.settled(snapshot)]
