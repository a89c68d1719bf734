"""The condition UnitChangeBlocked, and units that nodes cannot have."""

from collections.abc import Mapping

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import explained
from gpushare_operator.status.nodes.node_reports import PolicyNodes, ReportedCondition


def unit_change_blocked(nodes: PolicyNodes) -> ConditionState:
    """Its reason is that of the nodes; if they differ, the one that people can do something about."""
    reported = nodes.reported(UNIT_CHANGE_BLOCKED)
    if not reported:
        message = "no node reports anything that blocks another unit, mode or dialect"
        return condition_false(conditions.UNIT_CHANGE_BLOCKED, conditions.NOT_BLOCKED, message)
    reasons = sorted({condition.reason for condition in reported.values()})
    reason = conditions.PODS_HOLD_UNITS if conditions.PODS_HOLD_UNITS in reasons else reasons[0]
    return condition_true(conditions.UNIT_CHANGE_BLOCKED, reason, _messages(reported))


def units_refused(nodes: PolicyNodes) -> ConditionState | None:
    """Returns what keeps the policy from being Ready if nodes cannot have its unit."""
    reported = nodes.reported(UNIT_TOO_FINE)
    if not reported:
        return None
    return condition_true(conditions.DEGRADED, conditions.UNIT_TOO_FINE, _messages(reported))


def _messages(reported: Mapping[str, ReportedCondition]) -> str:
    return explained({name: condition.message for name, condition in reported.items()})
