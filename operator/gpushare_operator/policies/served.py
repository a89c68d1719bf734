"""What of a policy this version serves; ``gpushare_core.api.served`` says what that is."""

from collections.abc import Iterator

from gpushare_core.api.enums import Mode, SelectorOperator
from gpushare_core.api.policy import LabelExpression, NodeRule, NodeSelector, PolicySpec
from gpushare_core.api.served import Problem, combination_problem


def rule_problem(spec: PolicySpec, rule: NodeRule) -> Problem | None:
    """Returns what keeps the nodes of one rule from being served. Mode Off asks for nothing."""
    if rule.mode is Mode.OFF:
        return None
    return combination_problem(spec.scheduler.backend, rule.mode)


def problems(spec: PolicySpec) -> list[Problem]:
    """Returns everything in ``spec`` that is not served, each thing once."""
    all_problems = [rule_problem(spec, rule) for rule in spec.nodes]
    return list(dict.fromkeys(problem for problem in all_problems if problem))


def covered_rules(spec: PolicySpec) -> set[int]:
    """Returns the positions of rules that never get a node, whatever nodes there will be: an earlier rule
    requires less of labels."""
    selectors = [(position, rule.selector) for position, rule in enumerate(spec.nodes) if rule.selector]
    return {
        position
        for position, selector in selectors
        if any(_covers(earlier, selector) for before, earlier in selectors if before < position)
    }


def _covers(wide: NodeSelector, narrow: NodeSelector) -> bool:
    """Returns whether all that ``narrow`` selects is known to be selected by ``wide``."""
    required = [*_requirements(narrow)]
    return all(any(_implies(each, asked) for each in required) for asked in _requirements(wide))


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
