"""Which policy has which node, and by which of its rules: no node has two policies."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gpushare_core.api.enums import Mode, SelectorOperator
from gpushare_core.api.policy import LabelExpression, NodeRule, NodeSelector, PolicySpec
from gpushare_operator.cluster.objects import NodeObject, PolicyObject
from gpushare_operator.cluster.snapshot import Snapshot, oldest_first
from gpushare_operator.decide.policy_problems import is_served, rule_problem


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one policy gets of the nodes that it asks for."""

    enabled: Mapping[str, int] = field(default_factory=dict)
    """Node name -> the rule that it falls under, as position in the policy's ``spec.nodes``."""
    kept: frozenset[str] = frozenset()
    """Nodes that stay as they are: what is asked for them now cannot be read, or is not served."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Node name -> the older policy that has it."""
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Node name -> the policy that had it and of which something is still there."""

    @property
    def sharing(self) -> list[str]:
        """Returns the nodes that share their cards under this policy."""
        return [*self.enabled, *sorted(self.kept)]


@dataclass(frozen=True, slots=True)
class _Claim:
    """That a policy asks for a node. ``rule`` is None where what it asks for cannot be read, or is not
    served."""

    rule: int | None


def assign(snapshot: Snapshot, policy: PolicyObject) -> Assignment:
    """Returns the nodes of ``policy``.

    The older policy wins; a policy that is being deleted keeps its nodes until it is gone. What cannot be
    applied changes nothing: its nodes stay as the policy's GPUShareNodes say.
    """
    enabled: dict[str, int] = {}
    kept: set[str] = set()
    lost: dict[str, str] = {}
    waiting: dict[str, str] = {}
    older = _older_policies(snapshot, policy)
    for name, claim in _claims(snapshot, policy).items():
        if winner := _winner(snapshot, older, snapshot.nodes[name], policy):
            lost[name] = winner
        elif claim.rule is None:
            kept |= {name} if snapshot.is_in_force(policy, name) else set()
        elif others := snapshot.policies_on(name) - {policy.name}:
            waiting[name] = min(others)
        else:
            enabled[name] = claim.rule
    return Assignment(enabled, frozenset(kept), lost, waiting)


def _claims(snapshot: Snapshot, policy: PolicyObject) -> dict[str, _Claim]:
    """Returns node name -> how ``policy`` asks for it."""
    if policy.deleting:
        return {}
    claims = ((node.name, _claim(snapshot, policy, node)) for node in snapshot.nodes.values())
    return {name: claim for name, claim in claims if claim}


def _claim(snapshot: Snapshot, policy: PolicyObject, node: NodeObject) -> _Claim | None:
    """Returns how ``policy`` asks for ``node``; None when it does not. Mode Off leaves the node to others."""
    if node.deleting:
        return None
    if policy.spec is not None and is_served(policy):
        return _rule_claim(policy.spec, node)
    # Nobody knows what of it was meant, so nothing is let go.
    is_asked_for = policy.spec is not None and _rule_claim(policy.spec, node) is not None
    return _Claim(None) if is_asked_for or snapshot.is_in_force(policy, node.name) else None


def _rule_claim(spec: PolicySpec, node: NodeObject) -> _Claim | None:
    position = first_rule(spec.nodes, node)
    if position is None or spec.nodes[position].mode is Mode.OFF:
        return None
    return _Claim(position if rule_problem(spec, spec.nodes[position]) is None else None)


def _older_policies(snapshot: Snapshot, policy: PolicyObject) -> list[PolicyObject]:
    """Returns those that win against ``policy``; one that is being deleted wins nothing new."""
    staying = (other for other in snapshot.policies.values() if not other.deleting)
    return [other for other in oldest_first(staying) if other.precedence < policy.precedence]


def _winner(snapshot: Snapshot, older: Sequence[PolicyObject], node: NodeObject, policy: PolicyObject) -> str:
    """Returns the first of ``older`` that has ``node`` rather than ``policy``; empty when none has.

    What cannot be applied takes no node from a policy that is in force there.
    """
    is_in_force = snapshot.is_in_force(policy, node.name)
    for other in older:
        claim = _claim(snapshot, other, node)
        if claim and (claim.rule is not None or not is_in_force):
            return other.name
    return ""


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
