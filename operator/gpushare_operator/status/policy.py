"""The status of a policy, made from a snapshot."""

from collections.abc import Sequence
from datetime import datetime

from gpushare_core.api.conditions import Condition, condition, merge_conditions
from gpushare_core.api.policy import PolicyStatus
from gpushare_operator.cluster.objects import PolicyView
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.nodes import Assignment, assign
from gpushare_operator.decide.support import unserved
from gpushare_operator.decide.teardown import awaited
from gpushare_operator.status import conditions as reasons
from gpushare_operator.status.nodes import conflicted, degraded, nodes_ready, unit_change_blocked
from gpushare_operator.status.scheduler import scheduler_configured
from gpushare_operator.status.totals import sum_up
from gpushare_operator.status.verdict import Verdict, fails, holds


def policy_status(
    snapshot: Snapshot, policy: PolicyView, *, now: datetime, failures: Sequence[str] = ()
) -> PolicyStatus:
    """``failures`` are the actions that just did not succeed, in words."""
    assignment = assign(snapshot, policy)
    unit = policy.spec.memory_unit if policy.spec else "1Gi"
    totals = sum_up(snapshot, assignment, unit)
    return PolicyStatus(
        observed_generation=policy.generation,
        conditions=_conditions(policy, _verdicts(snapshot, policy, assignment, list(failures), now), now),
        nodes=totals.nodes,
        cards=totals.cards,
        units=totals.units,
        memory=totals.memory,
    )


def _verdicts(
    snapshot: Snapshot, policy: PolicyView, assignment: Assignment, failures: list[str], now: datetime
) -> list[Verdict]:
    shares = [snapshot.share_nodes[name] for name in assignment.enabled if name in snapshot.share_nodes]
    parts = [
        nodes_ready(snapshot, policy, assignment),
        scheduler_configured(snapshot, policy, now),
        conflicted(assignment),
        unit_change_blocked(shares),
        degraded(policy, shares, failures),
    ]
    ready = _leaving(snapshot, policy, parts) if policy.deleting else _ready(policy, parts)
    return [ready, *parts]


def _ready(policy: PolicyView, parts: list[Verdict]) -> Verdict:
    """The policy is Ready when all of it is in force; else the gravest obstacle is repeated here."""
    by_kind = {part.kind: part for part in parts}
    obstacles = [
        _if(by_kind[reasons.DEGRADED], _is_unserved(policy)),
        _if(by_kind[reasons.NODES_READY], not by_kind[reasons.NODES_READY].status),
        _if(by_kind[reasons.SCHEDULER_CONFIGURED], not by_kind[reasons.SCHEDULER_CONFIGURED].status),
        _if(by_kind[reasons.UNIT_CHANGE_BLOCKED], by_kind[reasons.UNIT_CHANGE_BLOCKED].status),
    ]
    worst = next((obstacle for obstacle in obstacles if obstacle), None)
    if worst is None:
        message = by_kind[reasons.NODES_READY].message
        return holds(reasons.READY, reasons.SERVING, message)
    return fails(reasons.READY, worst.reason, worst.message)


def _leaving(snapshot: Snapshot, policy: PolicyView, parts: list[Verdict]) -> Verdict:
    scheduler = next(part.message for part in parts if part.kind == reasons.SCHEDULER_CONFIGURED)
    still = ", ".join(awaited(snapshot, policy)) or "nothing"
    message = f"everything is being taken back: {scheduler}; still there: {still}"
    return fails(reasons.READY, reasons.DELETING, message)


def _if(verdict: Verdict, holds: bool) -> Verdict | None:  # noqa: FBT001
    return verdict if holds else None


def _is_unserved(policy: PolicyView) -> bool:
    return policy.spec is None or bool(unserved(policy.spec))


def _conditions(policy: PolicyView, verdicts: list[Verdict], now: datetime) -> list[Condition]:
    made = [
        condition(
            each.kind,
            status=each.status,
            reason=each.reason,
            message=each.message,
            generation=policy.generation,
            now=now,
        )
        for each in verdicts
    ]
    return merge_conditions(policy.status.conditions, made)
