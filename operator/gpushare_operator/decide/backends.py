"""The scheduler backends: what connects each, what disconnects it, and whether nothing of it is left.

The fourth part, what is said of it, is a table in ``status.scheduler``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.enums import Backend
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide import teardown
from gpushare_operator.decide.actions import Plan
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.dedicated import plan_dedicated
from gpushare_operator.decide.external import plan_external
from gpushare_operator.decide.leftovers import Teardown
from gpushare_operator.decide.scheduler import plan_connection
from gpushare_operator.decide.volcano import plan_volcano
from gpushare_operator.desired.names import Installation


@dataclass(frozen=True, slots=True)
class SchedulerBackend:
    """One way to have pods placed by cards."""

    name: Backend
    connect: Callable[[Snapshot, Installation, datetime], Plan]
    """Returns what is due now to have it connected, while a policy needs it."""

    def disconnect(self, situation: Teardown) -> Plan:
        """Returns what is due now to take it back; the steps are those of a policy's teardown."""
        return teardown.plan_disconnection(situation, self.name)

    def settled(self, snapshot: Snapshot) -> bool:
        """Returns whether nothing of it is left."""
        return teardown.is_disconnected(snapshot, self.name)


BACKENDS: Mapping[Backend, SchedulerBackend] = {
    backend.name: backend
    for backend in (
        SchedulerBackend(Backend.KUBE_SCHEDULER, plan_connection),
        SchedulerBackend(Backend.DEDICATED, plan_dedicated),
        SchedulerBackend(Backend.EXTERNAL, plan_external),
        SchedulerBackend(Backend.VOLCANO, plan_volcano),
    )
}


def plan_backends(situation: Teardown) -> Plan:
    """Returns what is due now of all backends: one is connected only when nothing of any other is left."""
    snapshot = situation.snapshot
    needed = needed_backend(snapshot)
    if needed is None:
        return teardown.plan_teardown(situation, teardown.Scope.SCHEDULER)
    former = former_backends(snapshot, needed)
    if former:
        return former[0].disconnect(situation)
    return BACKENDS[needed].connect(snapshot, situation.installation, situation.now)


def former_backends(snapshot: Snapshot, needed: Backend) -> list[SchedulerBackend]:
    """Returns backends other than ``needed`` of which something is left."""
    return [each for each in BACKENDS.values() if each.name is not needed and not each.settled(snapshot)]
