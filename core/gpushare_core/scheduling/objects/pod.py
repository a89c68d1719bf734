"""A pod as the API server and kube-scheduler write it, decoded only as far as its request needs.

Whole pods are large, and every filter brings one.
"""

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from gpushare_core.dialects.annotation_room import size_beside_ours
from gpushare_core.placement.requests import PodRequest, ResourceClass, read_request
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json

MAX_KNOWN = 2048
"""Bytes that are decoded of a spec: requests of longer specs are not remembered."""


class ResourceRequirements(msgspec.Struct, omit_defaults=True):
    """Source: ``v1.ResourceRequirements``."""

    limits: dict[str, str | int | float] | None = None
    requests: dict[str, str | int | float] | None = None


class Container(msgspec.Struct, rename="camel", omit_defaults=True):
    """Source: ``v1.Container``."""

    name: str
    restart_policy: str | None = None
    resources: ResourceRequirements | None = None


class _Preferred(msgspec.Struct):
    """Source: what the three kinds of ``v1.Affinity`` prefer, and do not require."""

    preferred: list[Any] | None = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(msgspec.Struct, rename="camel"):
    """Source: ``v1.Affinity``."""

    node_affinity: _Preferred | None = None
    pod_affinity: _Preferred | None = None
    pod_anti_affinity: _Preferred | None = None

    @property
    def prefers(self) -> bool:
        kinds = (self.node_affinity, self.pod_affinity, self.pod_anti_affinity)
        return any(kind is not None and kind.preferred for kind in kinds)


class SpreadConstraint(msgspec.Struct, rename="camel"):
    """Source: ``v1.TopologySpreadConstraint``."""

    when_unsatisfiable: str = ""


class PodSpec(msgspec.Struct, rename="camel", omit_defaults=True):
    """Source: ``v1.PodSpec``."""

    containers: list[Container] | None = None
    init_containers: list[Container] | None = None
    node_name: str = ""
    scheduler_name: str = ""
    priority: int | None = None
    preemption_policy: str | None = None
    termination_grace_period_seconds: int | None = None
    affinity: Affinity | None = None
    topology_spread_constraints: list[SpreadConstraint] | None = None


class PodMetadata(msgspec.Struct, rename="camel", kw_only=True):
    """Source: ``metav1.ObjectMeta``."""

    uid: str = ""
    namespace: str = ""
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    deletion_timestamp: str | None = None


class PodVersion(NamedTuple):
    """The version of a pod that a Binding is sent for: it takes effect on no other."""

    resource_version: str = ""
    """Empty: any."""
    annotations_size: int = 0
    """Bytes of its annotations without ours, which a Binding writes anew."""

    @classmethod
    def of(cls, resource_version: str, annotations: Mapping[str, str] | None) -> "PodVersion":
        return cls(resource_version, size_beside_ours(annotations or {}))


ANY_VERSION = PodVersion()


class PodStatus(msgspec.Struct, rename="camel"):
    """Source: ``v1.PodStatus``. No more of it: a filter is not to fail for what it does not need."""

    nominated_node_name: str = ""


class KubePod(msgspec.Struct):
    """A pod as Kubernetes writes it. Source: ``v1.Pod``."""

    metadata: PodMetadata = msgspec.field(default_factory=PodMetadata)
    spec: PodSpec = msgspec.field(default_factory=PodSpec)
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def reference(self) -> PodReference:
        return PodReference(self.metadata.namespace, self.metadata.name, self.metadata.uid)

    @property
    def version(self) -> PodVersion:
        return PodVersion.of(self.metadata.resource_version, self.metadata.annotations)

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def nominated_node(self) -> str:
        """On which kube-scheduler has evicted others for the pod; empty where there is none."""
        return self.status.nominated_node_name

    @property
    def prefers_nodes(self) -> bool:
        """Whether the pod itself says which of the nodes that fit are better: kube-scheduler scores by
        that."""
        spreads = self.spec.topology_spread_constraints or ()
        spreads_softly = any(spread.when_unsatisfiable == "ScheduleAnyway" for spread in spreads)
        return spreads_softly or (self.spec.affinity is not None and self.spec.affinity.prefers)

    @property
    def may_preempt(self) -> bool:
        """Whether others may be evicted for the pod: it waits for a node, and allows that."""
        never = self.spec.preemption_policy == "Never"
        return not (never or self.metadata.deletion_timestamp or self.spec.node_name)

    def asks_for_any(self, names: Collection[str]) -> bool:
        containers = (*(self.spec.init_containers or ()), *(self.spec.containers or ()))
        limits = (container.resources.limits for container in containers if container.resources)
        return any(name in (limit or ()) for limit in limits for name in names)

    def request(self, resources: Mapping[str, ResourceClass]) -> PodRequest:
        """Returns what the pod asks of the extended ``resources``, and of CPU and memory."""
        asking = structs.replace(self.spec, affinity=None, topology_spread_constraints=None)
        spec, ours = msgspec.json.encode(asking), tuple(resources.items())
        return (_known_request if len(spec) <= MAX_KNOWN else _request)(spec, ours)


def _request(spec: bytes, resources: tuple[tuple[str, ResourceClass], ...]) -> PodRequest:
    decoded: Json = msgspec.json.decode(spec)
    return read_request(decoded, dict(resources))


_known_request = lru_cache(maxsize=64)(_request)
"""Pods of one burst ask for the same, at every verb."""
