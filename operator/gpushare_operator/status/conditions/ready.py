"""The condition Ready: the ordered checks, and what it says while the policy is taken back."""

from collections.abc import Iterator
from dataclasses import dataclass

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_operator.backends.teardown_step import Leftover
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.teardown.steps import still_there
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import listed


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyConditions:
    """The other conditions of a policy, from which Ready follows."""

    is_served: bool
    nodes_ready: ConditionState
    scheduler_configured: ConditionState
    conflicted: ConditionState
    unit_change_blocked: ConditionState
    degraded: ConditionState
    books_agree: ConditionState
    units_refused: ConditionState | None = None
    """The part of ``degraded`` about units that nodes cannot have."""

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
    """Returns True when all of the policy is in force; else the first obstacle, repeated."""
    if policy.deleting:
        return _deleting(snapshot, policy, parts)
    if obstacle := next(_obstacles(parts), None):
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


def _obstacles(parts: PolicyConditions) -> Iterator[ConditionState]:
    # A spec that is invalid or not served has to be changed first; the rest may only follow from it.
    if not parts.is_served:
        yield parts.degraded
    # Without a node that shares its cards no pod gets units.
    if not parts.nodes_ready.is_true:
        yield parts.nodes_ready
    # Pods would be placed on cards without room.
    if not parts.scheduler_configured.is_true:
        yield parts.scheduler_configured
    # Pods run, but not with the present unit: it stays refused, whichever pod ends.
    if parts.units_refused:
        yield parts.units_refused
    if parts.unit_change_blocked.is_true:
        yield parts.unit_change_blocked
    # Pods run, but not on all nodes of the policy, or with other settings of the scheduler.
    if parts.conflicted.is_true:
        yield parts.conflicted
