"""Which policy has which node: no node has two."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from gpushare_core.api.policy import Mode, NodeRule
from gpushare_operator.cluster.objects import NodeView, PolicyView
from gpushare_operator.cluster.snapshot import Snapshot, by_seniority
from gpushare_operator.decide.selection import first_rule
from gpushare_operator.decide.support import is_served, unserved_rule


@dataclass(frozen=True, slots=True)
class Assignment:
    """What one policy gets of the nodes that it asks for."""

    enabled: Mapping[str, NodeRule] = field(default_factory=dict)
    """Node name -> the rule that it falls under."""
    lost: Mapping[str, str] = field(default_factory=dict)
    """Node name -> the older policy that has it."""
    waiting: Mapping[str, str] = field(default_factory=dict)
    """Node name -> the policy that had it and is still letting go."""


def assign(snapshot: Snapshot, policy: PolicyView) -> Assignment:
    """The older policy wins; a policy that is being deleted keeps its nodes until it is gone."""
    if policy.deleting:
        return Assignment()
    enabled: dict[str, NodeRule] = {}
    lost: dict[str, str] = {}
    waiting: dict[str, str] = {}
    elders = _elders(snapshot, policy)
    for name, rule in _claims(snapshot, policy).items():
        if winner := _claimant(elders, snapshot.nodes[name]):
            lost[name] = winner
        elif others := snapshot.holders(name) - {policy.name}:
            waiting[name] = min(others)
        elif is_served(policy) and unserved_rule(rule) is None:
            enabled[name] = rule
    return Assignment(enabled, lost, waiting)


def _claims(snapshot: Snapshot, policy: PolicyView) -> dict[str, NodeRule]:
    found = ((node.name, _claim(policy, node)) for node in snapshot.nodes.values())
    return {name: rule for name, rule in found if rule}


def _claim(policy: PolicyView, node: NodeView) -> NodeRule | None:
    """The rule by which ``policy`` wants ``node``. Mode Off leaves the node to other policies."""
    if node.deleting or policy.spec is None:
        return None
    rule = first_rule(policy.spec.nodes, node)
    return None if rule is None or rule.mode is Mode.OFF else rule


def _elders(snapshot: Snapshot, policy: PolicyView) -> list[PolicyView]:
    """Those that win against ``policy``; one that goes away lets its nodes go and wins nothing new."""
    staying = (each for each in snapshot.policies.values() if not each.deleting)
    return [each for each in by_seniority(staying) if each.seniority < policy.seniority]


def _claimant(elders: list[PolicyView], node: NodeView) -> str:
    return next((each.name for each in elders if _claim(each, node)), "")
