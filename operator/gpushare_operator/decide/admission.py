"""What admission policies know of the cluster: one GPUSharePolicy carries it in labels and annotations.

They look at one object only, and at none without these labels: each object that they look at makes the
creation of every pod in the cluster slower.
"""

from collections.abc import Iterator, Mapping

from gpushare_core.api.enums import AdmissionAnswer, MemoryIsolation, Mode
from gpushare_core.api.names import (
    ADMISSION_LABEL,
    FINALIZER,
    ISOLATED_ANNOTATION,
    ISOLATION_ADMISSION_LABEL,
    SERVED_ANNOTATION,
)
from gpushare_core.api.policy import PolicySpec
from gpushare_core.dialects.table import DIALECTS
from gpushare_operator.actions import MarkPolicy
from gpushare_operator.cluster.labels import MARK_ANNOTATIONS, MARK_LABELS
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot, oldest_first
from gpushare_operator.policies.served_resources import served_classes, served_resources

BY_STRICTNESS = (*AdmissionAnswer,)


def mark_policies(snapshot: ClusterSnapshot) -> Iterator[MarkPolicy]:
    """Yields what makes the oldest policy that stays the only one with the marks. A policy without our
    finalizer does not count: the operator may be unable to write to it."""
    policies = oldest_first(snapshot.policies.values())
    staying = [policy for policy in policies if not policy.deleting and FINALIZER in policy.finalizers]
    for policy in policies:
        marks = _marks(snapshot, staying) if policy in staying[:1] else {}
        if policy.marks != marks:
            labels = {key: marks.get(key) for key in MARK_LABELS}
            annotations = {key: marks.get(key) for key in MARK_ANNOTATIONS}
            yield MarkPolicy(policy.name, policy.uid, labels, annotations)


def _marks(snapshot: ClusterSnapshot, policies: list[PolicyObject]) -> Mapping[str, str]:
    """Returns no marks while no node shares its cards: then no pod concerns the admission policies."""
    served = served_resources(snapshot)
    if not served:
        return {}
    specs = [policy.spec for policy in policies if policy.spec]
    asked = [spec.admission.visible_devices for spec in specs]
    strictest = max(asked, key=BY_STRICTNESS.index, default=AdmissionAnswer.ALLOW)
    return {
        ADMISSION_LABEL: strictest.value,
        SERVED_ANNOTATION: ",".join(sorted(served | snapshot.traits.offered)),
        **_isolation_marks(specs, served),
    }


def _isolation_marks(specs: list[PolicySpec], served: frozenset[str]) -> Mapping[str, str]:
    """Returns no marks where no served resource is one of a rule that asks for isolation."""
    isolating = [spec for spec in specs if _isolated_resources(spec) & served]
    if not isolating:
        return {}
    names = served & {name for spec in isolating for name in _isolated_resources(spec)}
    asked = [spec.admission.isolation_bypass for spec in isolating]
    return {
        ISOLATION_ADMISSION_LABEL: max(asked, key=BY_STRICTNESS.index).value,
        ISOLATED_ANNOTATION: ",".join(sorted(names)),
    }


def _isolated_resources(spec: PolicySpec) -> frozenset[str]:
    """Returns the extended resources by which pods ask for cards of rules with isolation."""
    return frozenset(
        name
        for rule in spec.nodes
        if rule.mode is not Mode.OFF and rule.isolation.memory is not MemoryIsolation.NONE
        for name, resource in DIALECTS[spec.dialect].resources.items()
        if resource in served_classes(rule.mode)
    )
