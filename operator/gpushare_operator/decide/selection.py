"""Which rule of a policy a node falls under. Source: ``metav1.LabelSelector``, as the API server reads it."""

from collections.abc import Iterable, Mapping

from gpushare_core.api.policy import LabelExpression, NodeRule, NodeSelector, SelectorOperator
from gpushare_operator.cluster.objects import NodeView


def first_rule(rules: Iterable[NodeRule], node: NodeView) -> NodeRule | None:
    """A node belongs to the first rule that matches it."""
    return next((rule for rule in rules if matches(rule, node)), None)


def matches(rule: NodeRule, node: NodeView) -> bool:
    if rule.names is not None:
        return node.name in rule.names
    return rule.selector is not None and selects(rule.selector, node.labels)


def selects(selector: NodeSelector, labels: Mapping[str, str]) -> bool:
    """Whether all requirements hold."""
    equal = all(labels.get(key) == value for key, value in selector.match_labels.items())
    return equal and all(_holds(each, labels) for each in selector.match_expressions)


def _holds(expression: LabelExpression, labels: Mapping[str, str]) -> bool:
    value = labels.get(expression.key)
    match expression.operator:
        case SelectorOperator.IN:
            return value in expression.values
        case SelectorOperator.NOT_IN:
            return value not in expression.values
        case SelectorOperator.EXISTS:
            return value is not None
        case SelectorOperator.DOES_NOT_EXIST:
            return value is None
