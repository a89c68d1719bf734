"""The status of a policy, made from a snapshot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true, dated_conditions
from gpushare_core.api.policy import PolicyStatus
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide import served
from gpushare_operator.decide.leftovers import Leftover
from gpushare_operator.decide.nodes import Assignment, assign
from gpushare_operator.decide.teardown import still_there
from gpushare_operator.desired.names import Installation
from gpushare_operator.status import conditions
from gpushare_operator.status.checks import first_failure
from gpushare_operator.status.nodes import (
    api_problems,
    conflicted,
    contested_problems,
    degraded,
    nodes_ready,
    unit_change_blocked,
)
from gpushare_operator.status.scheduler import scheduler_configured
from gpushare_operator.status.totals import sum_up
from gpushare_operator.status.wording import listed


def policy_status(
    snapshot: Snapshot,
    policy: PolicyObject,
    installation: Installation,
    *,
    now: datetime,
    failures: Sequence[str] = (),
    contested: Sequence[str] = (),
) -> PolicyStatus:
    """Returns the status as of ``now``; ``failures`` are the actions that just did not succeed, ``contested``
    those without a lasting effect, in words."""
    assignment = assign(snapshot, policy)
    unit = policy.spec.memory_unit if policy.spec else "1Gi"
    totals = sum_up(snapshot, assignment, unit)
    scheduler = scheduler_configured(snapshot, policy, installation, now)
    problems = [*api_problems(failures), *contested_problems(contested)]
    parts = _parts(snapshot, policy, assignment, problems, scheduler)
    states = [_ready(snapshot, policy, parts), *parts.states]
    before, generation = policy.status.conditions, policy.generation
    return PolicyStatus(
        observed_generation=generation,
        conditions=dated_conditions(states, before=before, generation=generation, now=now),
        nodes=totals.nodes,
        cards=totals.cards,
        units=totals.units,
        memory=totals.memory,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What Ready is made of."""

    is_served: bool
    nodes_ready: ConditionState
    scheduler_configured: ConditionState
    conflicted: ConditionState
    unit_change_blocked: ConditionState
    degraded: ConditionState

    @property
    def states(self) -> tuple[ConditionState, ...]:
        return (
            self.nodes_ready,
            self.scheduler_configured,
            self.conflicted,
            self.unit_change_blocked,
            self.degraded,
        )


def _parts(
    snapshot: Snapshot,
    policy: PolicyObject,
    assignment: Assignment,
    problems: Sequence[Problem],
    scheduler: ConditionState,
) -> _Parts:
    shares = [snapshot.share_nodes[name] for name in assignment.sharing if name in snapshot.share_nodes]
    return _Parts(
        is_served=policy.spec is not None and not served.problems(policy.spec),
        nodes_ready=nodes_ready(snapshot, policy, assignment),
        scheduler_configured=scheduler,
        conflicted=conflicted(snapshot, policy, assignment),
        unit_change_blocked=unit_change_blocked(shares),
        degraded=degraded(policy, assignment, shares, problems),
    )


def _ready(snapshot: Snapshot, policy: PolicyObject, parts: _Parts) -> ConditionState:
    """Returns Ready: true when all of the policy is in force; else it repeats the first obstacle."""
    if policy.deleting:
        return _deleting(snapshot, policy, parts)
    if obstacle := first_failure(READY_CHECKS, parts):
        return condition_false(conditions.READY, obstacle.reason, obstacle.message)
    return condition_true(conditions.READY, conditions.SERVING, parts.nodes_ready.message)


def _deleting(snapshot: Snapshot, policy: PolicyObject, parts: _Parts) -> ConditionState:
    remaining = ", ".join(map(_in_words, still_there(snapshot, policy.name))) or "nothing"
    message = (
        f"everything is being taken back: {parts.scheduler_configured.message}; still there: {remaining}"
    )
    return condition_false(conditions.READY, conditions.DELETING, message)


def _in_words(leftover: Leftover) -> str:
    return f"{leftover.description} {listed(leftover.names)}" if leftover.names else leftover.description


def _whole_spec_is_served(parts: _Parts) -> ConditionState | None:
    return None if parts.is_served else parts.degraded


def _nodes_are_ready(parts: _Parts) -> ConditionState | None:
    return None if parts.nodes_ready.is_true else parts.nodes_ready


def _scheduler_is_configured(parts: _Parts) -> ConditionState | None:
    return None if parts.scheduler_configured.is_true else parts.scheduler_configured


def _units_are_in_force(parts: _Parts) -> ConditionState | None:
    return parts.unit_change_blocked if parts.unit_change_blocked.is_true else None


READY_CHECKS: tuple[Callable[[_Parts], ConditionState | None], ...] = (
    # What is invalid or not served has to be changed first; the rest may only follow from it.
    _whole_spec_is_served,
    # Without a node that shares its cards no pod gets any.
    _nodes_are_ready,
    # Pods would be placed, but on cards without room.
    _scheduler_is_configured,
    # Pods run, but not as the policy says now.
    _units_are_in_force,
)
