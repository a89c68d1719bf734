"""The condition about the cluster's scheduler, whatever backend connects it."""

from dataclasses import replace

from gpushare_core.api.conditions import ConditionState, condition_false
from gpushare_core.api.enums import Backend
from gpushare_core.api.policy_status import PolicyStatus
from gpushare_operator.backends.table import BACKENDS
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.decide.backend_choice import needed_backend, placing_backend, unneeded_backends
from gpushare_operator.policies import conditions


def scheduler_configured(situation: Situation, policy: PolicyObject) -> ConditionState:
    snapshot = situation.snapshot
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
        message = f"backend {needed} starts when nothing of {former} is left: {problem.message}"
        return condition_false(conditions.SCHEDULER_CONFIGURED, conditions.DISCONNECTING, message)
    state, choice = BACKENDS[needed].condition(situation), BACKENDS[needed].engine(situation)
    return replace(state, message=f"{state.message}{choice.fallback_note}") if choice else state


def serving_engine(situation: Situation, scheduler: ConditionState, before: PolicyStatus) -> str:
    """Returns the engine that places pods, as far as the cluster shows: that of the backend once it is
    connected, until then the one that did ``before``; empty where none of ours does."""
    needed = placing_backend(situation.snapshot)
    if needed is None:
        return ""
    if not scheduler.is_true:
        return before.engine if before.backend == needed else ""
    choice = BACKENDS[needed].engine(situation)
    return choice.engine if choice else ""


def _not_needed(going: Backend | None) -> ConditionState:
    """No scheduler is touched for a policy without nodes."""
    undone = f"; the connection of backend {going} is being removed" if going else ""
    message = (
        f"no node shares its cards, so no scheduler is connected to the extender{undone};"
        " the first such node connects it"
    )
    return condition_false(conditions.SCHEDULER_CONFIGURED, conditions.NOT_NEEDED, message)
