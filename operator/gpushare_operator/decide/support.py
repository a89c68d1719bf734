"""What of a policy this version serves."""

from gpushare_core.api.policy import Mode, NodeRule, PolicySpec
from gpushare_core.api.served import Problem, backend_problem, dialect_problem, mode_problem, source_problem
from gpushare_operator.cluster.objects import PolicyView


def is_served(policy: PolicyView) -> bool:
    """Whether any node of ``policy`` can be enabled at all."""
    return policy.spec is not None and unserved_policy(policy.spec) is None


def unserved_policy(spec: PolicySpec) -> Problem | None:
    """What keeps the whole policy from being served."""
    return dialect_problem(spec.dialect) or backend_problem(spec.scheduler.backend)


def unserved_rule(rule: NodeRule) -> Problem | None:
    """What keeps the nodes of one rule from being served."""
    if rule.mode is Mode.OFF:
        return None
    return mode_problem(rule.mode) or source_problem(rule.devices.source)


def unserved(spec: PolicySpec) -> list[Problem]:
    """Everything in ``spec`` that is not served, each thing once."""
    found = [unserved_policy(spec), *(unserved_rule(rule) for rule in spec.nodes)]
    return list(dict.fromkeys(each for each in found if each))
