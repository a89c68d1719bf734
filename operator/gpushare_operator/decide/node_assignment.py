"""Which policy has which node, and by which of its rules: no node has two policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.api.enums import Mode, SelectorOperator
from gpushare_core.api.policy import LabelExpression, NodeRule, NodeSelector
from gpushare_operator.cluster.objects import NodeObject, PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot, oldest_first
from gpushare_operator.decide.policy_problems import is_served, rule_problem


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one policy gets of the nodes that it asks for."""

    enabled: Mapping[str, int] = field(default_factory=dict)
    """Node name -> the rule that it falls under, as position in the policy's ``spec.nodes``."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Node name -> the older policy that has it."""
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Node name -> the policy that had it and of which something is still there."""


def assign(snapshot: Snapshot, policy: PolicyObject) -> Assignment:
    """Returns the nodes of ``policy``.

    The older policy wins; a policy that is being deleted keeps its nodes until it is gone.
    """
    if policy.deleting or policy.spec is None:
        return Assignment()
    enabled: dict[str, int] = {}
    lost: dict[str, str] = {}
    waiting: dict[str, str] = {}
    older = _older_policies(snapshot, policy)
    for name, position in _claims(snapshot, policy).items():
        if winner := _claimant(older, snapshot.nodes[name]):
            lost[name] = winner
        elif others := snapshot.policies_on(name) - {policy.name}:
            waiting[name] = min(others)
        elif is_served(policy) and rule_problem(policy.spec.nodes[position]) is None:
            enabled[name] = position
    return Assignment(enabled, lost, waiting)


def _claims(snapshot: Snapshot, policy: PolicyObject) -> dict[str, int]:
    """Returns node name -> position of the rule by which ``policy`` asks for it."""
    claims = ((node.name, _claim(policy, node)) for node in snapshot.nodes.values())
    return {name: position for name, position in claims if position is not None}


def _claim(policy: PolicyObject, node: NodeObject) -> int | None:
    """Returns the rule by which ``policy`` asks for ``node``. Mode Off leaves the node to other policies."""
    if node.deleting or policy.spec is None:
        return None
    position = first_rule(policy.spec.nodes, node)
    return None if position is None or policy.spec.nodes[position].mode is Mode.OFF else position


def _older_policies(snapshot: Snapshot, policy: PolicyObject) -> list[PolicyObject]:
    """Returns those that win against ``policy``; one that is being deleted wins nothing new."""
    staying = (other for other in snapshot.policies.values() if not other.deleting)
    return [other for other in oldest_first(staying) if other.precedence < policy.precedence]


def _claimant(policies: Sequence[PolicyObject], node: NodeObject) -> str:
    """Returns the first of ``policies`` that asks for ``node``; empty when none does."""
    return next((policy.name for policy in policies if _claim(policy, node) is not None), "")


def first_rule(rules: Sequence[NodeRule], node: NodeObject) -> int | None:
    """Returns the position of the first rule that matches ``node``."""
    return next((position for position, rule in enumerate(rules) if matches(rule, node)), None)


def matches(rule: NodeRule, node: NodeObject) -> bool:
    if rule.names is not None:
        return node.name in rule.names
    return rule.selector is not None and selects(rule.selector, node.labels)


def selects(selector: NodeSelector, labels: Mapping[str, str]) -> bool:
    """Returns whether all requirements hold, as the API server reads a ``metav1.LabelSelector``."""
    equal = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return equal and all(_is_met(expression, labels) for expression in selector.match_expressions)


def _is_met(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case SelectorOperator.IN:
            return value in expression.values
        case SelectorOperator.NOT_IN:
            return value not in expression.values
        case SelectorOperator.EXISTS:
            return value is not None
        case SelectorOperator.DOES_NOT_EXIST:
            return value is None
