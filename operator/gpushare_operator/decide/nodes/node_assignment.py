"""Which policy has which node, and by which of its rules: no node has two policies."""

from dataclasses import dataclass

from gpushare_core.api.enums import Mode
from gpushare_operator.cluster.nodes.observed_states import ObservedState
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot, oldest_first
from gpushare_operator.policies.served import rule_problem


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAssignment:
    """What one policy gets of one node: at most one of these."""

    rule: int | None = None
    """If the policy has the node: the position in ``spec.nodes`` of the rule that applies to it."""
    is_kept: bool = False
    """Whether the node stays as it is, because what is asked for it now cannot be read or is not served."""
    lost_to: str = ""
    """The older policy that has the node."""
    waits_for: str = ""
    """The policy that had the node, and of which something is still there."""

    @property
    def is_sharing(self) -> bool:
        return self.rule is not None or self.is_kept


NOT_ASKED_FOR = NodeAssignment()


@dataclass(frozen=True, slots=True)
class Claimants:
    """What a policy and the older ones ask for: equal values get the same nodes."""

    policy: PolicyObject
    older: tuple[PolicyObject, ...]
    """The policies that win against it; one that is being deleted wins no new node."""


@dataclass(frozen=True, slots=True)
class _Claim:
    """A policy's claim on a node. ``rule`` is None if what is asked for cannot be read or is not served."""

    rule: int | None


def claimants_of(snapshot: ClusterSnapshot, policy: PolicyObject) -> Claimants:
    staying = (other for other in snapshot.policies.values() if not other.deleting)
    older = (other for other in oldest_first(staying) if other.precedence < policy.precedence)
    return Claimants(policy.asked, tuple(other.asked for other in older))


def assign_node(state: ObservedState, claimants: Claimants) -> NodeAssignment:
    """Returns what a policy gets of one node.

    The older policy wins; a policy that is being deleted keeps its nodes until it is gone. A claim that
    cannot be applied changes nothing: the nodes stay as the policy's GPUShareNodes say.
    """
    claim = None if claimants.policy.deleting else _claim(state, claimants.policy)
    if claim is None:
        return NOT_ASKED_FOR
    if winner := _winner(state, claimants):
        return NodeAssignment(lost_to=winner)
    if claim.rule is None:
        return NodeAssignment(is_kept=state.is_in_force(claimants.policy))
    others = state.policies - {claimants.policy.name}
    return NodeAssignment(waits_for=min(others)) if others else NodeAssignment(rule=claim.rule)


def _claim(state: ObservedState, policy: PolicyObject) -> _Claim | None:
    """Mode Off claims nothing: the node is left to others."""
    node = state.node
    if node is None or node.deleting:
        return None
    spec = policy.spec
    if spec is None:
        # Nobody knows which nodes the policy asks for, so it keeps those that it has.
        return _Claim(None) if state.is_in_force(policy) else None
    position = spec.first_rule(node.name, node.labels)
    if position is None or spec.nodes[position].mode is Mode.OFF:
        return None
    return _Claim(position if rule_problem(spec, spec.nodes[position]) is None else None)


def _winner(state: ObservedState, claimants: Claimants) -> str:
    """Returns the first older policy that has the node instead of this one; empty if there is none. A claim
    that cannot be applied takes no node from a policy in force there."""
    is_in_force = state.is_in_force(claimants.policy)
    for other in claimants.older:
        claim = _claim(state, other)
        if claim and (claim.rule is not None or not is_in_force):
            return other.name
    return ""
