"""How many pods PodDisruptionBudgets let go. Pure.

Source: ``policy/v1`` PodDisruptionBudget, and ``pkg/registry/core/pod/rest/eviction.go`` of Kubernetes. A
selector without requirements selects every pod of its namespace; without a selector none is selected.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from gpushare_core.scheduling.preemption.bound_pods import BoundPod


class LabelRequirement(msgspec.Struct):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None

    def holds(self, labels: "dict[str, str]") -> bool:
        present, among = self.key in labels, labels.get(self.key) in (self.values or ())
        return {
            "In": among,
            "NotIn": not (present and among),
            "Exists": present,
            "DoesNotExist": not present,
        }[self.operator]


class LabelSelector(msgspec.Struct, rename="camel"):
    match_labels: dict[str, str] | None = None
    match_expressions: list[LabelRequirement] | None = None

    def selects(self, labels: "dict[str, str]") -> bool:
        equal = (labels.get(key) == value for key, value in (self.match_labels or {}).items())
        requirements = self.match_expressions or ()
        return all(equal) and all(requirement.holds(labels) for requirement in requirements)


class BudgetMetadata(msgspec.Struct):
    name: str
    namespace: str


class BudgetSpec(msgspec.Struct):
    selector: LabelSelector | None = None


class BudgetStatus(msgspec.Struct, rename="camel"):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None
    """Name of a pod whose eviction is counted already -> when."""


class Budget(msgspec.Struct):
    metadata: BudgetMetadata
    spec: BudgetSpec = msgspec.field(default_factory=BudgetSpec)
    status: BudgetStatus = msgspec.field(default_factory=BudgetStatus)

    def counts(self, pod: BoundPod) -> bool:
        """Returns whether the eviction of ``pod`` takes one of the allowed disruptions."""
        selector = self.spec.selector
        return (
            selector is not None
            and pod.pod.namespace == self.metadata.namespace
            and pod.pod.name not in (self.status.disrupted_pods or {})
            and selector.selects(dict(pod.labels))
        )


class BudgetList(msgspec.Struct):
    items: list[Budget]


def violating(pods: Iterable[BoundPod], budgets: Sequence[Budget]) -> list[BoundPod]:
    """Returns which of ``pods``, evicted in this order, a budget would not let go."""
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    found = []
    for pod in pods:
        counting = [place for place, budget in enumerate(budgets) if budget.counts(pod)]
        for place in counting:
            allowed[place] -= 1
        if any(allowed[place] < 0 for place in counting):
            found.append(pod)
    return found
