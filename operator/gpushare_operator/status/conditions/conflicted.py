"""The condition Conflicted: which nodes and scheduler settings an older policy decides."""

from collections.abc import Mapping

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.served import Problem
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions
from gpushare_operator.policies.decisive_policy import decisive_policy
from gpushare_operator.policies.wording import listed
from gpushare_operator.status.nodes.node_reports import PolicyNodes


def conflicted(snapshot: ClusterSnapshot, policy: PolicyObject, nodes: PolicyNodes) -> ConditionState:
    lost = nodes.by_node(lambda report: report.assignment.lost_to)
    problems = [*_lost_nodes(lost), *_overruled_settings(snapshot, policy)]
    if not problems:
        return condition_false(
            conditions.CONFLICTED, conditions.NO_CONFLICT, "no node is claimed by an older policy"
        )
    messages = "; ".join(problem.message for problem in problems)
    return condition_true(conditions.CONFLICTED, problems[0].reason, messages)


def _lost_nodes(lost: Mapping[str, str]) -> list[Problem]:
    if not lost:
        return []
    winners = listed(set(lost.values()))
    message = (
        f"{listed(lost)}: shared by the older policy {winners};"
        " select other nodes in this policy, or leave these out of that one"
    )
    return [Problem(conditions.NODES_CLAIMED, message)]


def _overruled_settings(snapshot: ClusterSnapshot, policy: PolicyObject) -> list[Problem]:
    """All policies share one connection of the scheduler."""
    decisive = decisive_policy(snapshot)
    if policy.deleting or decisive is None or decisive.name == policy.name:
        return []
    if policy.spec is None or decisive.spec is None or not snapshot.traits.shares_node(policy):
        return []
    ours, theirs = _of_the_connection(policy.spec), _of_the_connection(decisive.spec)
    overruled = [_setting(key, value) for key, value in theirs.items() if ours[key] != value]
    if not overruled:
        return []
    message = (
        f"the older policy {decisive.name} decides about the scheduler: {', '.join(overruled)};"
        " write the same in this policy"
    )
    return [Problem(conditions.SETTINGS_OVERRULED, message)]


def _setting(key: str, value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key}.{name} {field}" for name, field in value.items())
    return f"no {key}" if value is None else f"{key} {value}"


def _of_the_connection(spec: PolicySpec) -> Json:
    """Returns the settings that all policies share, by the names of their fields."""
    scheduler = spec.scheduler.to_json()
    named = {key: scheduler.get(key) for key in ("backend", "extenderPort", "timeoutSeconds", "volcano")}
    engine = spec.scheduler.desired_engine.value
    return {**named, "engine": engine, "placement.weight": spec.placement.weight}
