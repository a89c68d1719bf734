"""The pods of one node as preemption sees them: how important each is, and whether evicting it helps. Pure.

Source: ``v1.PodList``, decoded only as far as needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction

import msgspec

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.placement.quantity import read_amount
from gpushare_core.scheduling.objects.pod import (
    KubePod,
    PodMetadata,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)
from gpushare_core.scheduling.objects.pod_reference import PodReference

MIRROR = "kubernetes.io/config.mirror"
"""Annotation of the mirror pod of a static pod: the kubelet runs the pod whatever becomes of the mirror."""
DEFAULT_GRACE = 30
"""Source: ``DefaultTerminationGracePeriodSeconds`` of ``k8s.io/api/core/v1``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundPod:
    """A pod that is bound to a node and has not ended."""

    pod: PodReference
    priority: int = 0
    started: float = 0.0
    """When it began to run, or was made; seconds since the epoch."""
    labels: Mapping[str, str] = field(default_factory=dict)
    is_terminating: bool = False
    comes_back: bool = False
    """Whether it would run on the same node again at once: a static pod, or a pod of a DaemonSet."""
    grace: int = DEFAULT_GRACE
    """Seconds that it may take to end."""
    spec: PodSpec = field(default_factory=PodSpec, compare=False)

    @property
    def uid(self) -> str:
        return self.pod.uid

    @property
    def importance(self) -> tuple[int, float]:
        """The less, the less important: a lower priority, or the same and begun later. As kube-scheduler's
        ``MoreImportantPod``."""
        return self.priority, -self.started

    @property
    def frees(self) -> dict[str, Fraction]:
        """Resource that is not ours -> what its containers that run together request."""
        request = KubePod(spec=self.spec).request({})
        freed = {"cpu": read_amount(request.cpu), "memory": read_amount(request.memory)}
        for container in self.spec.containers or ():
            resources = container.resources or ResourceRequirements()
            for name, amount in ((resources.limits or {}) | (resources.requests or {})).items():
                if name not in {"cpu", "memory", *RESOURCES}:
                    freed[name] = freed.get(name, Fraction(0)) + read_amount(amount)
        return freed


class OwnerReference(msgspec.Struct):
    """Source: ``metav1.OwnerReference``."""

    kind: str = ""
    controller: bool | None = None


class OwnedMetadata(PodMetadata, rename="camel", kw_only=True):
    """Source: ``metav1.ObjectMeta``."""

    name: str
    namespace: str
    uid: str
    labels: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None
    creation_timestamp: str | None = None


class StartedStatus(PodStatus, rename="camel"):
    start_time: str | None = None


class OwnedPod(KubePod, kw_only=True):
    """A pod with what tells whether it would come back."""

    metadata: OwnedMetadata
    status: StartedStatus = msgspec.field(default_factory=StartedStatus)


class PodList(msgspec.Struct):
    items: list[OwnedPod]

    def pods(self) -> list[BoundPod]:
        return [_bound_pod(item) for item in self.items]


def _bound_pod(pod: OwnedPod) -> BoundPod:
    metadata, grace = pod.metadata, pod.spec.termination_grace_period_seconds
    controllers = [owner.kind for owner in metadata.owner_references or () if owner.controller]
    return BoundPod(
        pod=pod.reference,
        priority=pod.priority,
        started=_seconds(pod.status.start_time or metadata.creation_timestamp),
        labels=metadata.labels or {},
        is_terminating=metadata.deletion_timestamp is not None,
        comes_back=MIRROR in (metadata.annotations or {}) or "DaemonSet" in controllers,
        grace=DEFAULT_GRACE if grace is None else grace,
        spec=pod.spec,
    )


def _seconds(timestamp: str | None) -> float:
    try:
        return datetime.fromisoformat(timestamp or "").timestamp()
    except ValueError:
        return 0.0
