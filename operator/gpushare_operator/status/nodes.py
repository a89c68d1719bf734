"""Conditions about a policy's nodes."""

from collections.abc import Sequence

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import PolicyObject, ShareNodeObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide import policy_problems
from gpushare_operator.decide.node_assignment import Assignment, matches
from gpushare_operator.status import conditions
from gpushare_operator.status.node_readiness import why_not_ready
from gpushare_operator.status.wording import counted, explained, listed


def nodes_ready(snapshot: Snapshot, policy: PolicyObject, assignment: Assignment) -> ConditionState:
    if policy.deleting:
        return condition_false(conditions.NODES_READY, conditions.DELETING, "the policy lets its nodes go")
    late = {name: why for name in assignment.enabled if (why := why_not_ready(snapshot, name))}
    late.update({name: f"policy {other} is letting it go" for name, other in assignment.waiting.items()})
    remark = _idle_rules(snapshot, policy)
    if late:
        return condition_false(
            conditions.NODES_READY, conditions.NODES_NOT_READY, f"{explained(late)}{remark}"
        )
    if not assignment.enabled:
        message = "no node is shared: change spec.nodes, or label nodes so that a rule selects them"
        return condition_false(conditions.NODES_READY, conditions.NO_NODES_SELECTED, f"{message}{remark}")
    ready = counted(len(assignment.enabled), "node")
    return condition_true(conditions.NODES_READY, conditions.ALL_NODES_READY, f"{ready} ready{remark}")


def _idle_rules(snapshot: Snapshot, policy: PolicyObject) -> str:
    """Returns a remark on what selects nothing; that is no error: the nodes may come later."""
    rules = policy.spec.nodes if policy.spec else []
    nodes = snapshot.nodes.values()
    idle = [
        f"nodes[{position}]"
        for position, rule in enumerate(rules)
        if not any(matches(rule, node) for node in nodes)
    ]
    missing = {name for rule in rules for name in rule.names or () if name not in snapshot.nodes}
    remarks = [
        f"no node is selected by {', '.join(idle)}" if idle else "",
        f"there is no node named {listed(missing)}" if missing else "",
    ]
    return "".join(f"; {remark}" for remark in remarks if remark)


def conflicted(assignment: Assignment) -> ConditionState:
    if not assignment.lost:
        return condition_false(
            conditions.CONFLICTED, conditions.NO_CONFLICT, "no node is claimed by an older policy"
        )
    winners = listed(set(assignment.lost.values()))
    message = (
        f"{listed(assignment.lost)}: shared by the older policy {winners};"
        " select other nodes here, or leave these out there"
    )
    return condition_true(conditions.CONFLICTED, conditions.NODES_CLAIMED, message)


def unit_change_blocked(shares: Sequence[ShareNodeObject]) -> ConditionState:
    blocked = _messages(shares, UNIT_CHANGE_BLOCKED)
    if not blocked:
        message = "every node has the unit and mode of the policy"
        return condition_false(conditions.UNIT_CHANGE_BLOCKED, conditions.NOT_BLOCKED, message)
    return condition_true(conditions.UNIT_CHANGE_BLOCKED, conditions.PODS_HOLD_UNITS, explained(blocked))


def degraded(
    policy: PolicyObject, shares: Sequence[ShareNodeObject], failures: Sequence[str]
) -> ConditionState:
    """Returns a condition about everything that is wrong; its reason is that of the gravest, the first."""
    problems = [*_spec_problems(policy), *_api_problems(failures), *_card_problems(shares)]
    if not problems:
        return condition_false(conditions.DEGRADED, conditions.AS_EXPECTED, "nothing is wrong")
    messages = "; ".join(problem.message for problem in problems)
    return condition_true(conditions.DEGRADED, problems[0].reason, messages)


def _spec_problems(policy: PolicyObject) -> list[Problem]:
    if policy.spec is None:
        return [Problem(conditions.INVALID_SPEC, f"{policy.error}; correct the spec")]
    return policy_problems.problems(policy.spec)


def _api_problems(failures: Sequence[str]) -> list[Problem]:
    if not failures:
        return []
    message = f"the API server refused, trying again: {'; '.join(failures[:3])}"
    return [Problem(conditions.API_ERRORS, message)]


def _card_problems(shares: Sequence[ShareNodeObject]) -> list[Problem]:
    too_fine = _messages(shares, UNIT_TOO_FINE)
    unhealthy = {
        share.name: counted(share.unhealthy_cards, "card") for share in shares if share.unhealthy_cards
    }
    problems = [
        Problem(conditions.UNIT_TOO_FINE, explained(too_fine)) if too_fine else None,
        Problem(conditions.CARDS_UNHEALTHY, f"unhealthy: {explained(unhealthy)}") if unhealthy else None,
    ]
    return [problem for problem in problems if problem]


def _messages(shares: Sequence[ShareNodeObject], type_: str) -> dict[str, str]:
    """Returns node name -> message, of the nodes for which the condition is true."""
    by_node = {share.name: share.conditions.get(type_) for share in shares}
    return {
        name: condition.message
        for name, condition in by_node.items()
        if condition and condition.status == "True"
    }
