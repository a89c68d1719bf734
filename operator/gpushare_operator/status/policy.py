"""The status of a policy, made from a snapshot."""

from collections.abc import Sequence
from datetime import datetime

from gpushare_core.api.conditions import dated_conditions
from gpushare_core.api.policy import PolicyStatus
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide import policy_problems
from gpushare_operator.decide.node_assignment import Assignment, assign
from gpushare_operator.status.nodes import conflicted, degraded, nodes_ready, unit_change_blocked
from gpushare_operator.status.policy_readiness import PolicyConditions, policy_ready
from gpushare_operator.status.scheduler import scheduler_configured
from gpushare_operator.status.totals import sum_up


def policy_status(
    snapshot: Snapshot, policy: PolicyObject, *, now: datetime, failures: Sequence[str] = ()
) -> PolicyStatus:
    """Returns the status as of ``now``; ``failures`` are the actions that just did not succeed, in words."""
    assignment = assign(snapshot, policy)
    unit = policy.spec.memory_unit if policy.spec else "1Gi"
    totals = sum_up(snapshot, assignment, unit)
    parts = _conditions(snapshot, policy, assignment, failures, now)
    states = [policy_ready(snapshot, policy, parts), *parts.states]
    before, generation = policy.status.conditions, policy.generation
    return PolicyStatus(
        observed_generation=generation,
        conditions=dated_conditions(states, before=before, generation=generation, now=now),
        nodes=totals.nodes,
        cards=totals.cards,
        units=totals.units,
        memory=totals.memory,
    )


def _conditions(
    snapshot: Snapshot, policy: PolicyObject, assignment: Assignment, failures: Sequence[str], now: datetime
) -> PolicyConditions:
    shares = [snapshot.share_nodes[name] for name in assignment.enabled if name in snapshot.share_nodes]
    return PolicyConditions(
        is_served=policy.spec is not None and not policy_problems.problems(policy.spec),
        nodes_ready=nodes_ready(snapshot, policy, assignment),
        scheduler_configured=scheduler_configured(snapshot, policy, now),
        conflicted=conflicted(assignment),
        unit_change_blocked=unit_change_blocked(shares),
        degraded=degraded(policy, shares, failures),
    )
