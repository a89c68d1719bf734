"""Conditions about a policy's nodes."""

from collections.abc import Collection, Mapping, Sequence

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.enums import Mode
from gpushare_core.api.names import UNIT_CHANGE_BLOCKED, UNIT_TOO_FINE
from gpushare_core.api.policy import PolicySpec
from gpushare_core.api.served import Problem
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.policies import conditions, served
from gpushare_operator.policies.decisive_policy import decisive_policy
from gpushare_operator.policies.wording import DEFECT, counted, explained, listed
from gpushare_operator.status.policy_nodes import MatchedRule, OwnRule, PolicyNodes, Told

WORKLOADS_POLICIES = ("gpushare-operator-workloads", "gpushare-operator-images")
"""The admission policies that say what the operator may run."""
NO_DEPLOYMENT = "no params found"
"""In the API server's words: that what an admission policy compares with is not there."""
WITHOUT_DEPLOYMENT = (
    "the operator's own Deployment, which says the image of all programs, is not there although this operator"
    " runs: apply the manifests again, or delete the operator's pods, too"
)
WHO_CHANGES_WORKLOADS = (
    "what is named there and not the operator's is added on the way by another admission webhook or policy:"
    " exclude the namespace of gpushare from it; or the manifests are of another version than the operator:"
    " apply those of its version"
)


def nodes_ready(snapshot: ClusterSnapshot, policy: PolicyObject, nodes: PolicyNodes) -> ConditionState:
    if policy.deleting:
        return condition_false(conditions.NODES_READY, conditions.DELETING, "the policy lets its nodes go")
    late, missing = _late(nodes), _missing_nodes(snapshot, policy)
    remark = f"{_idle_rules(policy, nodes)}{_labels_of_others(policy, nodes)}"
    if late or missing:
        reason = conditions.NODES_NOT_READY if late else conditions.NODES_MISSING
        obstacles = "; ".join(filter(None, (explained(late), _how_to_do_without(missing))))
        return condition_false(conditions.NODES_READY, reason, f"{obstacles}{remark}")
    if not nodes.number:
        message = "no node is shared: change spec.nodes, or label nodes so that a rule selects them"
        return condition_false(conditions.NODES_READY, conditions.NO_NODES_SELECTED, f"{message}{remark}")
    if nodes.is_cut:
        message = "more is to be written to nodes than one round writes: the next one goes on"
        return condition_false(conditions.NODES_READY, conditions.NODES_NOT_READY, f"{message}{remark}")
    if outdated := _outdated_plugins(snapshot, policy):
        where = f"{counted(outdated, 'node')} of {nodes.number}"
        message = f"on {where} the plugin has not started with the present settings yet"
        return condition_false(conditions.NODES_READY, conditions.PLUGINS_OUTDATED, f"{message}{remark}")
    ready = counted(nodes.number, "node")
    return condition_true(conditions.NODES_READY, conditions.ALL_NODES_READY, f"{ready} ready{remark}")


def _outdated_plugins(snapshot: ClusterSnapshot, policy: PolicyObject) -> int:
    own = (daemon_set for daemon_set in snapshot.daemon_sets.values() if daemon_set.policy == policy.name)
    return sum(each.outdated for each in own)


def _late(nodes: PolicyNodes) -> dict[str, str]:
    """Returns node name -> what it is waited for."""
    late = nodes.said(lambda report: report.why_not_ready)
    waiting = nodes.said(lambda report: report.assignment.waits_for)
    late.update({name: f"policy {other} is letting it go" for name, other in waiting.items()})
    late.update({name: f"{DEFECT}: {why}" for name, why in nodes.defects.items()})
    return late


def _missing_nodes(snapshot: ClusterSnapshot, policy: PolicyObject) -> set[str]:
    """Returns names by which nodes are asked for that are not there."""
    rules = policy.spec.nodes if policy.spec else []
    asked = (name for rule in rules if rule.mode is not Mode.OFF for name in rule.names or ())
    return {name for name in asked if name not in snapshot.nodes}


def _how_to_do_without(missing: Collection[str]) -> str:
    if not missing:
        return ""
    return (
        f"there is no node named {listed(missing)}: what is named is waited for; take it out of names, and"
        " select nodes that come and go by their labels"
    )


def _idle_rules(policy: PolicyObject, nodes: PolicyNodes) -> str:
    """Returns a remark on what selects nothing; that is no error: the nodes may come later."""
    rules, matched = policy.spec.nodes if policy.spec else [], nodes.index.sums
    idle = [
        f"nodes[{position}]"
        for position, rule in enumerate(rules)
        if rule.names is None and MatchedRule(position) not in matched
    ]
    return f"; no node is selected by {', '.join(idle)}" if idle else ""


def _shadowed_rules(policy: PolicyObject, nodes: PolicyNodes) -> list[Problem]:
    """Returns what is said of rules all of whose nodes belong to earlier ones."""
    sums = nodes.index.sums
    positions = range(len(policy.spec.nodes)) if policy.spec else ()
    in_vain = {each for each in positions if MatchedRule(each) in sums and OwnRule(each) not in sums}
    in_vain |= served.covered_rules(policy.spec) if policy.spec else set()
    if not in_vain:
        return []
    names = ", ".join(f"nodes[{position}]" for position in sorted(in_vain))
    has = "has" if len(in_vain) == 1 else "have"
    message = (
        f"{names} {has} no effect: a node belongs to the first entry that matches it, and earlier ones match"
        " every node selected there; put the narrower entry first, or take it out"
    )
    return [Problem(conditions.RULES_SHADOWED, message)]


def _labels_of_others(policy: PolicyObject, nodes: PolicyNodes) -> str:
    """Returns a remark on nodes that the dialect's tools do not see: it may be meant so."""
    labels = DIALECTS[policy.spec.dialect].node_labels if policy.spec else {}
    hidden_labels = nodes.said(lambda report: report.hidden_labels)
    hidden = {
        f"{key}={value}": [name for name, each in hidden_labels.items() if f"{key}={value}" in each]
        for key, value in labels.items()
    }
    return "".join(
        f"; another value of the label {label} was set on {listed(names)} by others and stays"
        for label, names in hidden.items()
        if names
    )


def conflicted(snapshot: ClusterSnapshot, policy: PolicyObject, nodes: PolicyNodes) -> ConditionState:
    problems = [*_lost_nodes(nodes.lost), *_overruled_settings(snapshot, policy)]
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
        " select other nodes here, or leave these out there"
    )
    return [Problem(conditions.NODES_CLAIMED, message)]


def _overruled_settings(snapshot: ClusterSnapshot, policy: PolicyObject) -> list[Problem]:
    """There is one connection of the scheduler for all policies."""
    decisive = decisive_policy(snapshot)
    if policy.deleting or decisive is None or decisive.name == policy.name:
        return []
    if not snapshot.traits.shares_node(policy):
        return []
    if policy.spec is None or decisive.spec is None:
        return []
    ours, theirs = _of_the_connection(policy.spec), _of_the_connection(decisive.spec)
    overruled = [_setting(key, value) for key, value in theirs.items() if ours[key] != value]
    if not overruled:
        return []
    message = (
        f"the older policy {decisive.name} decides about the scheduler: {', '.join(overruled)};"
        " ask for the same here"
    )
    return [Problem(conditions.SETTINGS_OVERRULED, message)]


def _setting(key: str, value: object) -> str:
    """Returns for people a setting of the scheduler, whose value may have fields."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}.{name} {each}" for name, each in value.items())
    return f"no {key}" if value is None else f"{key} {value}"


def _of_the_connection(spec: PolicySpec) -> Json:
    """Returns what there is one of for all policies, by the name that people know it by."""
    scheduler = spec.scheduler.to_json()
    named = {key: scheduler.get(key) for key in ("backend", "extenderPort", "timeoutSeconds", "volcano")}
    return {**named, "placement.weight": spec.placement.weight}


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


def degraded(policy: PolicyObject, nodes: PolicyNodes, writes: Sequence[Problem]) -> ConditionState:
    """Returns a condition about everything that is wrong; its reason is that of the gravest, the first.

    ``writes`` are the problems that the operator has with its own writes.
    """
    problems = [
        *_spec_problems(policy, nodes.kept),
        *_shadowed_rules(policy, nodes),
        *writes,
        *_card_problems(nodes),
    ]
    if not problems:
        return condition_false(conditions.DEGRADED, conditions.AS_EXPECTED, "no fault is known")
    messages = "; ".join(problem.message for problem in problems)
    return condition_true(conditions.DEGRADED, problems[0].reason, messages)


def _spec_problems(policy: PolicyObject, kept_nodes: Sequence[str]) -> list[Problem]:
    if policy.spec is None:
        problems = [Problem(conditions.INVALID_SPEC, f"{policy.error}; correct the spec")]
    else:
        problems = served.problems(policy.spec)
    if not (problems and kept_nodes):
        return problems
    *others, last = problems
    kept = f"{last.message}; what was in force before stays: {listed(kept_nodes)}"
    return [*others, Problem(last.reason, kept)]


def api_problems(failures: Sequence[str]) -> list[Problem]:
    if not failures:
        return []
    ours = [failure for failure in failures if any(policy in failure for policy in WORKLOADS_POLICIES)]
    if ours:
        advice = WITHOUT_DEPLOYMENT if NO_DEPLOYMENT in ours[0] else WHO_CHANGES_WORKLOADS
        return [Problem(conditions.WORKLOADS_REFUSED, f"{ours[0]}; {advice}")]
    who = (
        "not everything is done"
        if any(DEFECT in failure for failure in failures)
        else "the API server refused"
    )
    message = f"{who}, trying again: {'; '.join(failures[:3])}"
    return [Problem(conditions.API_ERRORS, message)]


def contested_problems(contested: Sequence[str]) -> list[Problem]:
    if not contested:
        return []
    message = f"{'; '.join(contested[:3])}; it is repeated ever more rarely, at last every five minutes"
    return [Problem(conditions.CHANGES_CONTESTED, message)]


def _card_problems(nodes: PolicyNodes) -> list[Problem]:
    too_fine = units_refused(nodes)
    numbers = nodes.said(lambda report: report.unhealthy_cards)
    unhealthy = {name: counted(number, "card") for name, number in numbers.items()}
    problems = [
        Problem(too_fine.reason, too_fine.message) if too_fine else None,
        Problem(conditions.CARDS_UNHEALTHY, f"unhealthy: {explained(unhealthy)}") if unhealthy else None,
    ]
    return [problem for problem in problems if problem]
