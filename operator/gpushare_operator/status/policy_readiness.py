"""Whether a policy is Ready: the ordered checks, and what it says while it is taken back."""

from collections.abc import Callable
from dataclasses import dataclass

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_operator.backends.teardown import Leftover
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.teardown.steps import still_there
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import first_failure, listed


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConditions:
    """What a policy says beside Ready, and what that is made of."""

    is_served: bool
    nodes_ready: ConditionState
    scheduler_configured: ConditionState
    conflicted: ConditionState
    unit_change_blocked: ConditionState
    degraded: ConditionState
    books_agree: ConditionState
    units_refused: ConditionState | None = None
    """A unit that nodes cannot have, as part of ``degraded``."""

    @property
    def states(self) -> tuple[ConditionState, ...]:
        return (
            self.nodes_ready,
            self.scheduler_configured,
            self.conflicted,
            self.unit_change_blocked,
            self.degraded,
            self.books_agree,
        )


def policy_ready(snapshot: ClusterSnapshot, policy: PolicyObject, parts: PolicyConditions) -> ConditionState:
    """Returns Ready: true when all of the policy is in force; else it repeats the first obstacle."""
    if policy.deleting:
        return _deleting(snapshot, policy, parts)
    if obstacle := first_failure(READY_CHECKS, parts):
        return condition_false(conditions.READY, obstacle.reason, obstacle.message)
    return condition_true(conditions.READY, conditions.SERVING, parts.nodes_ready.message)


def _deleting(snapshot: ClusterSnapshot, policy: PolicyObject, parts: PolicyConditions) -> ConditionState:
    remaining = ", ".join(map(_in_words, still_there(snapshot, policy.name))) or "nothing"
    message = (
        f"everything is being taken back: {parts.scheduler_configured.message}; still there: {remaining}"
    )
    return condition_false(conditions.READY, conditions.DELETING, message)


def _in_words(leftover: Leftover) -> str:
    return f"{leftover.description} {listed(leftover.names)}" if leftover.names else leftover.description


def _whole_spec_is_served(parts: PolicyConditions) -> ConditionState | None:
    return None if parts.is_served else parts.degraded


def _nodes_are_ready(parts: PolicyConditions) -> ConditionState | None:
    return None if parts.nodes_ready.is_true else parts.nodes_ready


def _scheduler_is_configured(parts: PolicyConditions) -> ConditionState | None:
    return None if parts.scheduler_configured.is_true else parts.scheduler_configured


def _nothing_is_overruled(parts: PolicyConditions) -> ConditionState | None:
    return parts.conflicted if parts.conflicted.is_true else None


def _units_are_possible(parts: PolicyConditions) -> ConditionState | None:
    return parts.units_refused


def _units_are_in_force(parts: PolicyConditions) -> ConditionState | None:
    return parts.unit_change_blocked if parts.unit_change_blocked.is_true else None


READY_CHECKS: tuple[Callable[[PolicyConditions], ConditionState | None], ...] = (
    # What is invalid or not served has to be changed first; the rest may only follow from it.
    _whole_spec_is_served,
    # Without a node that shares its cards no pod gets any.
    _nodes_are_ready,
    # Pods would be placed, but on cards without room.
    _scheduler_is_configured,
    # Pods run, but not as the policy says now: what is refused stays so, whoever ends.
    _units_are_possible,
    _units_are_in_force,
    # Or not on all nodes that it asks for, or with other settings of the scheduler.
    _nothing_is_overruled,
)
