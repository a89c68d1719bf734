"""Whether a pod may go to a node by taints, selectors and the like: all but amounts.

Source: kube-scheduler's plugins NodeUnschedulable, TaintToleration and NodeAffinity.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpushare_cli.decide.objects.kube_node import KubeNode, KubeTaint
from gpushare_cli.decide.scheduling.written_pod import (
    NodeTerm,
    WrittenRequirement,
    WrittenSpec,
    WrittenToleration,
)

UNSCHEDULABLE = KubeTaint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
"""Who tolerates this goes to cordoned nodes, too."""
KEEPS_OFF = ("NoSchedule", "NoExecute")
HOSTNAME, NODE_NAME = "kubernetes.io/hostname", "metadata.name"
"""A label and a field, by which a pod asks for one node."""


class PlacementRule(StrEnum):
    """What keeps a pod off a node."""

    CORDON = "Cordon"
    TAINT = "Taint"
    SELECTOR = "Selector"
    AFFINITY = "Affinity"


@dataclass(frozen=True, slots=True)
class NodeObstacle:
    """Equal on nodes that a pod is kept off by the same."""

    rule: PlacementRule
    text: str
    """Such as ``disktype=ssd``, as people write it in YAML or to kubectl."""
    key: str = ""
    """Of the label or taint; empty where several have to hold."""


def obstacles(spec: WrittenSpec, node: KubeNode) -> Iterator[NodeObstacle]:
    """Yields everything that keeps a pod off the node."""
    tolerations = spec.tolerations or ()
    if node.spec.unschedulable and not _is_tolerated(UNSCHEDULABLE, tolerations):
        yield NodeObstacle(PlacementRule.CORDON, "")
    for taint in node.spec.taints or ():
        keeps_off = taint.effect in KEEPS_OFF and taint.key != UNSCHEDULABLE.key
        if keeps_off and not _is_tolerated(taint, tolerations):
            yield NodeObstacle(PlacementRule.TAINT, taint_text(taint), taint.key)
    labels = node.metadata.labels or {}
    for key, value in (spec.node_selector or {}).items():
        if labels.get(key) != value:
            yield NodeObstacle(PlacementRule.SELECTOR, f"{key}={value}", key)
    yield from _missed_terms(spec.terms, labels, {NODE_NAME: node.name})


def taint_text(taint: KubeTaint) -> str:
    """As kubectl takes it."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _is_tolerated(taint: KubeTaint, tolerations: Sequence[WrittenToleration]) -> bool:
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: WrittenToleration, taint: KubeTaint) -> bool:
    """Source: ``ToleratesTaint`` of ``k8s.io/component-helpers``; an empty key with ``Exists`` is every
    taint. ``Lt`` and ``Gt`` (1.35, alpha) count as not tolerating."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    operator = toleration.operator or "Equal"
    if operator == "Exists":
        return not toleration.key or toleration.key == taint.key
    is_same = toleration.key == taint.key and (toleration.value or "") == (taint.value or "")
    return operator == "Equal" and is_same


def _missed_terms(
    terms: Sequence[NodeTerm] | None, labels: Mapping[str, str], fields: Mapping[str, str]
) -> Iterator[NodeObstacle]:
    """Of one term yields what does not hold; of several, of which one has to hold, all of them together."""
    missed = [_missed(term, labels, fields) for term in terms or ()]
    if terms is None or any(found == [] for found in missed):
        return
    if len(missed) == 1 and missed[0]:
        for requirement in missed[0]:
            yield NodeObstacle(PlacementRule.AFFINITY, requirement_text(requirement), requirement.key)
    else:
        yield NodeObstacle(PlacementRule.AFFINITY, " or ".join(map(term_text, terms)))


def _missed(
    term: NodeTerm, labels: Mapping[str, str], fields: Mapping[str, str]
) -> list[WrittenRequirement] | None:
    """Returns what of ``term`` does not hold; None for a term that asks nothing, which never holds."""
    asked = [(requirement, labels) for requirement in term.match_expressions or ()]
    asked += [(requirement, fields) for requirement in term.match_fields or ()]
    missed = [requirement for requirement, present in asked if not _holds(requirement, present)]
    return missed if asked else None


def term_text(term: NodeTerm) -> str:
    requirements = (*(term.match_expressions or ()), *(term.match_fields or ()))
    return " and ".join(map(requirement_text, requirements)) or "a term that selects nothing"


def requirement_text(requirement: WrittenRequirement) -> str:
    """As ``kubectl get nodes -l`` takes it, where it can."""
    values = requirement.values or []
    match requirement.operator:
        case "In" if len(values) == 1:
            return f"{requirement.key}={values[0]}"
        case "In" | "NotIn":
            return f"{requirement.key} {requirement.operator.lower()} ({', '.join(values)})"
        case "Exists":
            return f"label {requirement.key}"
        case "DoesNotExist":
            return f"no label {requirement.key}"
    return f"{requirement.key} {requirement.operator} {', '.join(values)}"


_COMPARED: Mapping[str, Callable[[int, int], bool]] = {"Gt": int.__gt__, "Lt": int.__lt__}


def _holds(requirement: WrittenRequirement, present: Mapping[str, str]) -> bool:
    """Source: ``Requirement.Matches`` of ``k8s.io/apimachinery/pkg/labels``."""
    value, values = present.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return _compares(requirement.operator, value, values)


def _compares(operator: str, value: str | None, values: Sequence[str]) -> bool:
    compare = _COMPARED.get(operator)
    try:
        return compare is not None and compare(int(value or ""), int(values[0]))
    except (ValueError, IndexError):
        return False
