"""What of a policy this version serves; ``gpushare_core.api.served`` says what that is."""

from gpushare_core.api.enums import Mode
from gpushare_core.api.policy import NodeRule, PolicySpec
from gpushare_core.api.served import Problem, combination_problem
from gpushare_operator.cluster.objects import PolicyObject


def is_served(policy: PolicyObject) -> bool:
    """Returns whether any node of ``policy`` can be enabled at all."""
    return policy.spec is not None


def rule_problem(spec: PolicySpec, rule: NodeRule) -> Problem | None:
    """Returns what keeps the nodes of one rule from being served. Mode Off asks for nothing."""
    if rule.mode is Mode.OFF:
        return None
    return combination_problem(spec.scheduler.backend, rule.mode)


def problems(spec: PolicySpec) -> list[Problem]:
    """Returns everything in ``spec`` that is not served, each thing once."""
    all_problems = [rule_problem(spec, rule) for rule in spec.nodes]
    return list(dict.fromkeys(problem for problem in all_problems if problem))
