"""What admission policies know of the cluster: one GPUSharePolicy carries it in a label and an annotation.

They look at one object only, and at none without that label: each object that they look at makes the creation
of every pod in the cluster slower.
"""

from collections.abc import Iterator, Mapping

from gpushare_core.api.enums import VisibleDevices
from gpushare_core.api.names import ADMISSION_LABEL, FINALIZER, SERVED_ANNOTATION
from gpushare_operator.actions import MarkPolicy
from gpushare_operator.cluster.objects import PolicyObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot, oldest_first
from gpushare_operator.policies.served_resources import served_resources

BY_STRICTNESS = (VisibleDevices.ALLOW, VisibleDevices.WARN, VisibleDevices.DENY)


def mark_policies(snapshot: ClusterSnapshot) -> Iterator[MarkPolicy]:
    """Yields what makes the oldest policy that stays the only one with the marks. A policy without our
    finalizer does not count: the operator may be unable to write to it."""
    policies = oldest_first(snapshot.policies.values())
    staying = [policy for policy in policies if not policy.deleting and FINALIZER in policy.finalizers]
    for policy in policies:
        marks = _marks(snapshot, staying) if policy in staying[:1] else {}
        if policy.marks != marks:
            labels = {ADMISSION_LABEL: marks.get(ADMISSION_LABEL)}
            annotations = {SERVED_ANNOTATION: marks.get(SERVED_ANNOTATION)}
            yield MarkPolicy(policy.name, policy.uid, labels, annotations)


def _marks(snapshot: ClusterSnapshot, policies: list[PolicyObject]) -> Mapping[str, str]:
    """Returns no marks while no node shares its cards: then no pod concerns the admission policies."""
    served = served_resources(snapshot)
    if not served:
        return {}
    asked = [policy.spec.admission.visible_devices for policy in policies if policy.spec]
    strictest = max(asked, key=BY_STRICTNESS.index, default=VisibleDevices.ALLOW)
    return {
        ADMISSION_LABEL: strictest.value,
        SERVED_ANNOTATION: ",".join(sorted(served | snapshot.traits.offered)),
    }
