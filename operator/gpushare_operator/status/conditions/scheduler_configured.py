"""The condition about the cluster's scheduler, whatever backend connects it."""

from datetime import datetime

from gpushare_core.api.conditions import ConditionState, condition_false
from gpushare_core.api.enums import Backend
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend, unneeded_backends
from gpushare_operator.desired.names import Installation
from gpushare_operator.policies import conditions


def scheduler_configured(
    snapshot: ClusterSnapshot, policy: PolicyObject, installation: Installation, now: datetime
) -> ConditionState:
    situation = Situation(snapshot=snapshot, policy=policy.name, installation=installation, now=now)
    needed = needed_backend(snapshot)
    going = unneeded_backends(snapshot, needed)
    if policy.deleting:
        own = policy.spec.scheduler.backend if policy.spec else Backend.KUBE_SCHEDULER
        backend = going[0] if going else BACKENDS[own]
        problem = backend.farewell(situation, needed)
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    if needed is None:
        return _not_needed(going[0].name if going else None)
    if going and BACKENDS[needed].may_be_connected(snapshot):
        problem, former = going[0].farewell(situation, needed), going[0].name
        message = f"backend {needed} comes when nothing of {former} is left: {problem.message}"
        return condition_false(conditions.SCHEDULER_CONFIGURED, conditions.DISCONNECTING, message)
    return BACKENDS[needed].condition(situation)


def _not_needed(going: Backend | None) -> ConditionState:
    """No scheduler is touched for a policy without nodes."""
    undone = f"; what connects backend {going} is being taken back" if going else ""
    message = (
        f"no node shares its cards, so no scheduler is connected to the extender{undone};"
        " that is done with the first node"
    )
    return condition_false(conditions.SCHEDULER_CONFIGURED, conditions.NOT_NEEDED, message)
