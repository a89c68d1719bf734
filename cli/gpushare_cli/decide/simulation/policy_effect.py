"""Which nodes would get what if a policy was applied, by the rules by which the operator decides."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from gpushare_cli.decide.ledger import is_held
from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.simulation.node_sharing import pods_on, sharing_of, spec_of
from gpushare_cli.decide.simulation.policy_change import (
    NodeChange,
    NodeEffect,
    NodeSharing,
)
from gpushare_cli.decide.simulation.redivision import (
    divided,
    simulated_share_node,
    unit_in_force,
)
from gpushare_core.api.enums import Mode, UnitChange
from gpushare_core.api.policy import NodeRule, PolicySpec
from gpushare_core.api.served import combination_problem
from gpushare_core.api.share_node import NodeSpec
from gpushare_core.placement.modes.table import unit_asked_for
from gpushare_core.placement.units import NodeUnit, UnitFields
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.text.json_object import Json

NEVER_MADE = "9999"
"""Of a policy that does not exist: it will be younger than all others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyClaim:
    """A policy, as far as it asks for nodes."""

    name: str
    created: str = NEVER_MADE
    """RFC 3339; the older policy wins a node."""
    spec: PolicySpec | None
    """None where it cannot be read: it keeps the nodes that it has."""

    def missing(self, nodes: Collection[str]) -> list[str]:
        """Returns the names in its rules that are none of ``nodes``."""
        rules = self.spec.nodes if self.spec else ()
        return sorted({name for rule in rules for name in rule.names or ()}.difference(nodes))

    def rule_of(self, node: KubeNode) -> NodeRule | None:
        """Returns None where it does not claim the node, as far as anybody can read."""
        position = None if self.spec is None else self.spec.first_rule(node.name, node.metadata.labels or {})
        rule = None if self.spec is None or position is None else self.spec.nodes[position]
        return None if rule is None or rule.mode is Mode.OFF else rule

    def served(self, rule: NodeRule) -> NodeSpec | None:
        """Returns None where no version of gpushare does what is asked for."""
        if self.spec is None or combination_problem(self.spec.scheduler.backend, rule.mode):
            return None
        return self.spec.of_node(self.name, rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyEffect:
    """The nodes as they would be soon after the policy is applied."""

    changes: Sequence[NodeChange]
    """Of every node that shares cards before or after."""
    share_nodes: Sequence[Json]
    """The GPUShareNodes that there would be."""
    in_the_end: Sequence[Json]
    """The same, once the pods are gone for which nodes wait."""


def policy_effect(
    claims: Iterable[PolicyClaim],
    nodes: Mapping[str, KubeNode],
    share_nodes: Mapping[str, Json],
    *,
    ledger: Ledger,
) -> PolicyEffect:
    """``claims``: those of all policies, with the changed one in place of what it is now. ``ledger``: of the
    nodes as they are."""
    ordered = sorted(claims, key=lambda claim: (claim.created, claim.name))
    changes, after, in_the_end = [], [], []
    for name in sorted({*nodes, *share_nodes}):
        present, held = share_nodes.get(name), ledger.node(name) or NodeLedger()
        coming, effect = _after(ordered, nodes.get(name), present, held=held)
        if effect is NodeEffect.NONE and coming is None:
            continue
        changes.append(
            NodeChange(
                node=name,
                effect=effect,
                before=sharing_of(present),
                after=_asked_sharing(coming, effect),
                pods=pods_on(held),
            )
        )
        after.extend([coming] if coming else [])
        in_the_end.extend([_in_the_end(coming)] if coming else [])
    return PolicyEffect(changes=changes, share_nodes=after, in_the_end=in_the_end)


def _in_the_end(coming: Json) -> Json:
    spec = spec_of(coming)
    fields = UnitFields(str(spec.get("memoryUnit", "")), spec.get("slicesPerCard"))
    unit = unit_asked_for(str(spec.get("mode", "")), fields)
    return divided(coming, unit) if unit and unit_in_force(coming) else coming


def lost_nodes(claims: Sequence[PolicyClaim], name: str, nodes: Mapping[str, KubeNode]) -> dict[str, str]:
    """Returns the nodes that policy ``name`` asks for and does not get -> the older policy that has them."""
    ordered = sorted(claims, key=lambda claim: (claim.created, claim.name))
    own = next(claim for claim in ordered if claim.name == name)
    older = ordered[: ordered.index(own)]
    lost = {
        node: next((claim.name for claim in older if _claims(claim, kube_node)), "")
        for node, kube_node in sorted(nodes.items())
        if _claims(own, kube_node)
    }
    return {node: other for node, other in lost.items() if other}


def _claims(claim: PolicyClaim, node: KubeNode) -> bool:
    rule = claim.rule_of(node)
    return rule is not None and claim.served(rule) is not None


def _after(
    claims: Sequence[PolicyClaim], node: KubeNode | None, present: Json | None, *, held: NodeLedger
) -> tuple[Json | None, NodeEffect]:
    """Returns the GPUShareNode to come, or None, and what happens to the node."""
    is_blocked = False
    """By a claim that cannot be served: it takes no node from a policy in force there, and leaves it to no
    other."""
    for claim in claims if node else ():
        is_in_force = claim.name == spec_of(present).get("policy", "")
        rule = claim.rule_of(node) if node else None
        asked = claim.served(rule) if rule else None
        if is_in_force and not asked and (rule or claim.spec is None):
            return present, NodeEffect.NONE
        if node and asked and (is_in_force or not is_blocked):
            return _asked(node.name, asked, present, held=held)
        is_blocked |= rule is not None and not asked
    return None, NodeEffect.LOSES if present else NodeEffect.NONE


def _asked(name: str, asked: NodeSpec, present: Json | None, *, held: NodeLedger) -> tuple[Json, NodeEffect]:
    spec = asked.to_json()
    unit = unit_asked_for(asked.mode, UnitFields(asked.memory_unit, asked.slices_per_card))
    if present is None:
        known = simulated_share_node(name, spec, unit) if unit else {"metadata": {"name": name}, "spec": spec}
        return known, NodeEffect.GAINS
    coming = {**present, "spec": spec}
    in_force = unit_in_force(present)
    if unit is None or in_force is None:
        return coming, NodeEffect.SETTINGS
    if not _divides_anew(unit, in_force, spec, present):
        return coming, NodeEffect.SETTINGS if _differ(spec_of(present), spec) else NodeEffect.NONE
    if not is_held(held):
        renamed = {**coming, "status": {**coming["status"], "dialect": asked.dialect}}
        return divided(renamed, unit), NodeEffect.DIVIDES
    return coming, NodeEffect.KEEPS if asked.unit_change is UnitChange.KEEP else NodeEffect.WAITS


def _divides_anew(unit: NodeUnit, in_force: NodeUnit, spec: Json, present: Json) -> bool:
    """Units of another size, by another name, or more or less of each card."""
    reserved = spec.get("reservedMemory", "0") != spec_of(present).get("reservedMemory", "0")
    dialect = present["status"].get("dialect") or spec_of(present).get("dialect", "")
    return unit.meanings != in_force.meanings or reserved or spec.get("dialect", "") != dialect


def _differ(before: Json, after: Json) -> bool:
    """Fields that only a newer version knows do not count. Without isolation the field is left out."""
    is_isolated_otherwise = before.get("isolation") != after.get("isolation")
    return is_isolated_otherwise or any(before.get(key) != value for key, value in after.items())


def _asked_sharing(coming: Json | None, effect: NodeEffect) -> NodeSharing:
    """Returns what is asked for: a node that waits gets there later."""
    if coming is None or effect is not NodeEffect.WAITS:
        return sharing_of(coming)
    spec = spec_of(coming)
    fields = UnitFields(str(spec.get("memoryUnit", "")), spec.get("slicesPerCard"))
    unit = unit_asked_for(str(spec.get("mode", "")), fields)
    shown = sharing_of(coming)
    return NodeSharing(
        policy=shown.policy,
        mode=str(spec.get("mode", "")),
        unit=unit.text if unit else "",
        isolation=shown.isolation,
        cards=shown.cards,
    )
