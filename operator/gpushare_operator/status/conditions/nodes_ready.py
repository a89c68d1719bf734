"""The condition NodesReady: which nodes a policy still waits for."""

from collections.abc import Collection

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.enums import Mode
from gpushare_core.dialects.table import DIALECTS
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions
from gpushare_operator.policies.wording import DEFECT, counted, explained, listed
from gpushare_operator.status.nodes.node_reports import MatchedRule, PolicyNodes


def nodes_ready(snapshot: ClusterSnapshot, policy: PolicyObject, nodes: PolicyNodes) -> ConditionState:
    if policy.deleting:
        return condition_false(
            conditions.NODES_READY, conditions.DELETING, "the policy is releasing its nodes"
        )
    late, missing = _late(nodes), _missing_nodes(snapshot, policy)
    note = f"{_idle_rules(policy, nodes)}{_labels_of_others(policy, nodes)}"
    if late or missing:
        reason = conditions.NODES_NOT_READY if late else conditions.NODES_MISSING
        obstacles = "; ".join(filter(None, (explained(late), _how_to_do_without(missing))))
        return condition_false(conditions.NODES_READY, reason, f"{obstacles}{note}")
    if not nodes.number:
        message = "no node is shared: change spec.nodes, or label nodes so that a rule selects them"
        return condition_false(conditions.NODES_READY, conditions.NO_NODES_SELECTED, f"{message}{note}")
    if nodes.is_cut:
        message = "there are more changes to nodes than fit in one round: the next round continues"
        return condition_false(conditions.NODES_READY, conditions.NODES_NOT_READY, f"{message}{note}")
    own = (daemon_set for daemon_set in snapshot.daemon_sets.values() if daemon_set.policy == policy.name)
    if outdated := sum(daemon_set.outdated for daemon_set in own):
        where = f"{counted(outdated, 'node')} of {nodes.number}"
        message = f"on {where} the plugin has not started with the present settings yet"
        return condition_false(conditions.NODES_READY, conditions.PLUGINS_OUTDATED, f"{message}{note}")
    ready = counted(nodes.number, "node")
    return condition_true(conditions.NODES_READY, conditions.ALL_NODES_READY, f"{ready} ready{note}")


def _late(nodes: PolicyNodes) -> dict[str, str]:
    late = nodes.by_node(lambda report: report.why_not_ready)
    waiting = nodes.by_node(lambda report: report.assignment.waits_for)
    late.update({name: f"policy {other} is releasing it" for name, other in waiting.items()})
    late.update({name: f"{DEFECT}: {why}" for name, why in nodes.defects.items()})
    return late


def _missing_nodes(snapshot: ClusterSnapshot, policy: PolicyObject) -> set[str]:
    """Returns the nodes that rules name and that are not there."""
    rules = policy.spec.nodes if policy.spec else []
    asked = (name for rule in rules if rule.mode is not Mode.OFF for name in rule.names or ())
    return {name for name in asked if name not in snapshot.nodes}


def _how_to_do_without(missing: Collection[str]) -> str:
    if not missing:
        return ""
    return (
        f"there is no node named {listed(missing)}: the policy waits for nodes that it names; remove them"
        " from names, and select nodes that come and go by their labels"
    )


def _idle_rules(policy: PolicyObject, nodes: PolicyNodes) -> str:
    """Returns a note on rules that select nothing, which is no error: the nodes may come later."""
    rules, matched = policy.spec.nodes if policy.spec else [], nodes.index.sums
    idle = [
        f"nodes[{position}]"
        for position, rule in enumerate(rules)
        if rule.names is None and MatchedRule(position) not in matched
    ]
    return f"; no node is selected by {', '.join(idle)}" if idle else ""


def _labels_of_others(policy: PolicyObject, nodes: PolicyNodes) -> str:
    """Returns a note on nodes that the dialect's tools do not see, which may be intended."""
    dialect_labels = DIALECTS[policy.spec.dialect].node_labels if policy.spec else {}
    hidden_labels = nodes.by_node(lambda report: report.hidden_labels)
    hidden = {
        f"{key}={value}": [name for name, labels in hidden_labels.items() if f"{key}={value}" in labels]
        for key, value in dialect_labels.items()
    }
    return "".join(
        f"; another value of the label {label} was set on {listed(names)} by others and stays"
        for label, names in hidden.items()
        if names
    )
