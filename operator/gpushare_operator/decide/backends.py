"""The scheduler backends: what connects each, what disconnects it, and whether nothing of it is left.

The fourth part, what is said of it, is a table in ``status.scheduler``.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from gpushare_core.api.enums import Backend
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide import teardown
from gpushare_operator.decide.actions import Plan
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.dedicated import may_be_made, plan_dedicated
from gpushare_operator.decide.external import plan_external
from gpushare_operator.decide.leftovers import Teardown
from gpushare_operator.decide.scheduler import is_connecting, plan_connection, scheduler_settings
from gpushare_operator.decide.volcano import plan_volcano
from gpushare_operator.desired.names import Installation


@dataclass(frozen=True, slots=True)
class SchedulerBackend:
    """One way to have pods placed by cards."""

    name: Backend
    connect: Callable[[ClusterSnapshot, Installation, datetime], Plan]
    """Returns what is due now to have it connected, while a policy needs it."""
    may_be_connected: Callable[[ClusterSnapshot], bool] = lambda _: True
    """Whether nothing is in the way that only people can remove: until then what is in force stays."""

    def disconnect(self, situation: Teardown) -> Plan:
        """Returns what is due now to take it back; the steps are those of a policy's teardown."""
        return teardown.plan_disconnection(situation, self.name)

    def settled(self, snapshot: ClusterSnapshot) -> bool:
        """Returns whether nothing of it is left."""
        return teardown.is_disconnected(snapshot, self.name)


BACKENDS: Mapping[Backend, SchedulerBackend] = {
    backend.name: backend
    for backend in (
        SchedulerBackend(Backend.KUBE_SCHEDULER, plan_connection),
        SchedulerBackend(Backend.DEDICATED, plan_dedicated, may_be_made),
        SchedulerBackend(Backend.EXTERNAL, plan_external),
        SchedulerBackend(Backend.VOLCANO, plan_volcano),
    )
}


def plan_backends(situation: Teardown) -> Plan:
    """Returns what is due now of all backends: one is connected only when nothing of any other is left.

    What is in force is taken back only for one that can be connected.
    """
    snapshot = situation.snapshot
    needed = needed_backend(snapshot)
    if needed is None:
        return teardown.plan_teardown(situation, teardown.Scope.SCHEDULER)
    former = former_backends(snapshot, needed)
    if former:
        may_go = BACKENDS[needed].may_be_connected(snapshot)
        return former[0].disconnect(situation) if may_go else Plan()
    return BACKENDS[needed].connect(snapshot, situation.installation, situation.now)


def asked_connection(snapshot: ClusterSnapshot) -> Hashable:
    """Returns the same as long as policies and nodes together ask for the same connection."""
    return needed_backend(snapshot), replace(scheduler_settings(snapshot), listening=())


def is_placing_by_sums(snapshot: ClusterSnapshot, installation: Installation, now: datetime) -> bool:
    """Returns whether the cluster's kube-schedulers place pods by the sums of nodes still, and will ask the
    extender soon. Where that has failed nobody waits for it."""
    if needed_backend(snapshot) is not Backend.KUBE_SCHEDULER:
        return False
    return is_connecting(snapshot, installation, now)


def placing_backend(snapshot: ClusterSnapshot) -> Backend | None:
    """Returns the backend that new pods are to come to; None when no policy needs one."""
    needed = needed_backend(snapshot)
    former = former_backends(snapshot, needed) if needed else []
    stays = needed and former and not BACKENDS[needed].may_be_connected(snapshot)
    return former[0].name if stays else needed


def former_backends(snapshot: ClusterSnapshot, needed: Backend) -> list[SchedulerBackend]:
    """Returns backends other than ``needed`` of which something is left."""
    return [each for each in BACKENDS.values() if each.name is not needed and not each.settled(snapshot)]
