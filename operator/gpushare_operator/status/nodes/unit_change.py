"""The condition UnitChangeBlocked, and units that nodes cannot have."""

from collections.abc import Mapping

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import explained
from gpushare_operator.status.nodes.node_reports import PolicyNodes, Told


def unit_change_blocked(nodes: PolicyNodes) -> ConditionState:
    """Its reason is that of the nodes, of several the one that people can do something about."""
    told = nodes.told(UNIT_CHANGE_BLOCKED)
    if not told:
        message = "no node tells of anything in the way of another unit, mode or dialect"
        return condition_false(conditions.UNIT_CHANGE_BLOCKED, conditions.NOT_BLOCKED, message)
    reasons = sorted({each.reason for each in told.values()})
    reason = conditions.PODS_HOLD_UNITS if conditions.PODS_HOLD_UNITS in reasons else reasons[0]
    return condition_true(conditions.UNIT_CHANGE_BLOCKED, reason, explained(_messages(told)))


def units_refused(nodes: PolicyNodes) -> ConditionState | None:
    """Returns what keeps the policy from being Ready where nodes cannot have its unit."""
    told = nodes.told(UNIT_TOO_FINE)
    return (
        condition_true(conditions.DEGRADED, conditions.UNIT_TOO_FINE, explained(_messages(told)))
        if told
        else None
    )


def _messages(told: Mapping[str, Told]) -> Mapping[str, str]:
    return {name: each.message for name, each in told.items()}
