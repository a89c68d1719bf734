"""Which parts of a policy's spec this version serves, by ``gpushare_core.api.served``."""

from collections.abc import Iterator

from gpushare_core.api.enums import Mode, SelectorOperator
from gpushare_core.api.policy import LabelExpression, NodeRule, NodeSelector, PolicySpec
from gpushare_core.api.served import Problem, combination_problem


def rule_problem(spec: PolicySpec, rule: NodeRule) -> Problem | None:
    """Returns why the nodes of one rule cannot be served. Mode Off asks for nothing."""
    if rule.mode is Mode.OFF:
        return None
    return combination_problem(spec.scheduler.backend, rule.mode)


def problems(spec: PolicySpec) -> list[Problem]:
    all_problems = (rule_problem(spec, rule) for rule in spec.nodes)
    return list(dict.fromkeys(problem for problem in all_problems if problem))


def covered_rules(spec: PolicySpec) -> set[int]:
    """Returns the positions of rules that no node can ever fall under: an earlier rule selects all that they
    select."""
    selectors = [(position, rule.selector) for position, rule in enumerate(spec.nodes) if rule.selector]
    return {
        position
        for position, selector in selectors
        if any(_covers(earlier, selector) for before, earlier in selectors if before < position)
    }


def _covers(wide: NodeSelector, narrow: NodeSelector) -> bool:
    """Returns whether ``wide`` is known to select all that ``narrow`` selects."""
    narrow_ones = [*_requirements(narrow)]
    return all(
        any(_implies(requirement, wide_one) for requirement in narrow_ones)
        for wide_one in _requirements(wide)
    )


def _requirements(selector: NodeSelector) -> Iterator[LabelExpression]:
    for key, value in selector.match_labels.items():
        yield LabelExpression(key=key, operator=SelectorOperator.IN, values=[value])
    yield from selector.match_expressions


def _implies(one: LabelExpression, other: LabelExpression) -> bool:
    if one.key != other.key:
        return False
    match other.operator:
        case SelectorOperator.IN:
            return one.operator is SelectorOperator.IN and {*one.values} <= {*other.values}
        case SelectorOperator.NOT_IN:
            return one.operator is SelectorOperator.NOT_IN and {*one.values} >= {*other.values}
        case SelectorOperator.EXISTS:
            return one.operator in (SelectorOperator.IN, SelectorOperator.EXISTS)
        case SelectorOperator.DOES_NOT_EXIST:
            return one.operator is SelectorOperator.DOES_NOT_EXIST
