"""The condition Degraded: everything that is wrong with a policy, the gravest first."""

from collections.abc import Sequence

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.names import ISOLATION_IN_FORCE
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.policies import conditions, served
from gpushare_operator.policies.wording import DEFECT, counted, explained, listed
from gpushare_operator.status.conditions.unit_change_blocked import units_refused
from gpushare_operator.status.nodes.node_reports import MatchedRule, OwnRule, PolicyNodes

WORKLOADS_POLICIES = ("gpushare-operator-workloads", "gpushare-operator-images")
"""The admission policies for what the operator may run."""
NO_DEPLOYMENT = "no params found"
"""The API server's words if the object that an admission policy compares with is not there."""
WITHOUT_DEPLOYMENT = (
    "the operator's Deployment, which names the image of all programs, is missing although this operator"
    " runs: apply the manifests again, or delete the operator's pods, too"
)
WHO_CHANGES_WORKLOADS = (
    "another admission webhook or policy adds fields to what the operator writes: exclude gpushare's"
    " namespace from it; or the manifests are of another version than the operator: apply those of its"
    " version"
)


def degraded(policy: PolicyObject, nodes: PolicyNodes, writes: Sequence[Problem]) -> ConditionState:
    """Its reason is that of the gravest problem; ``writes`` are the problems with the operator's own
    writes."""
    problems = [
        *_spec_problems(policy, list(nodes.by_node(lambda report: report.assignment.is_kept))),
        *_shadowed_rules(policy, nodes),
        *writes,
        *_isolation_problems(nodes),
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
    kept = f"{last.message}; the earlier settings stay in force: {listed(kept_nodes)}"
    return [*others, Problem(last.reason, kept)]


def _shadowed_rules(policy: PolicyObject, nodes: PolicyNodes) -> list[Problem]:
    """Returns the problem of rules whose nodes all belong to earlier rules."""
    sums = nodes.index.sums
    positions = range(len(policy.spec.nodes)) if policy.spec else ()
    in_vain = {rule for rule in positions if MatchedRule(rule) in sums and OwnRule(rule) not in sums}
    in_vain |= served.covered_rules(policy.spec) if policy.spec else set()
    if not in_vain:
        return []
    names = ", ".join(f"nodes[{position}]" for position in sorted(in_vain))
    has = "has" if len(in_vain) == 1 else "have"
    message = (
        f"{names} {has} no effect: a node belongs to the first entry that matches it, and earlier ones match"
        " every node selected there; put the narrower entry first, or remove it"
    )
    return [Problem(conditions.RULES_SHADOWED, message)]


def _card_problems(nodes: PolicyNodes) -> list[Problem]:
    too_fine = units_refused(nodes)
    numbers = nodes.by_node(lambda report: report.unhealthy_cards)
    unhealthy = {name: counted(number, "card") for name, number in numbers.items()}
    problems = [Problem(too_fine.reason, too_fine.message)] if too_fine else []
    if unhealthy:
        problems.append(Problem(conditions.CARDS_UNHEALTHY, f"unhealthy: {explained(unhealthy)}"))
    return problems


def _isolation_problems(nodes: PolicyNodes) -> list[Problem]:
    names = nodes.reported(ISOLATION_IN_FORCE)
    if not names:
        return []
    message = (
        f"containers may take more memory than they asked for on {listed(names)}: the condition"
        f" {ISOLATION_IN_FORCE} of the GPUShareNode names them, and says what to do"
    )
    return [Problem(conditions.ISOLATION_NOT_IN_FORCE, message)]


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
    message = f"{'; '.join(contested[:3])}; it is repeated less and less often, in the end every five minutes"
    return [Problem(conditions.CHANGES_CONTESTED, message)]


def eviction_problems(unevicted: Sequence[str]) -> list[Problem]:
    """Returns the problem of pods that are to be evicted and that the API server keeps."""
    if not unevicted:
        return []
    more = f"; and {len(unevicted) - 3} more" if len(unevicted) > 3 else ""
    message = (
        f"evictions are refused, trying again: {'; '.join(unevicted[:3])}{more}; PodDisruptionBudgets apply:"
        " let them allow it, or delete such a pod"
    )
    return [Problem(conditions.EVICTIONS_REFUSED, message)]
