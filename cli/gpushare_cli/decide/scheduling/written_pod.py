"""A pod as somebody wrote it: all of its spec that can keep it from running."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field

from gpushare_core.scheduling.objects.pod import ResourceRequirements
from gpushare_core.text.json_object import Json

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class WrittenVariable(Struct, rename="camel"):
    """Source: ``v1.EnvVar``."""

    name: str = ""
    value: str | None = None
    value_from: Any = None


class WrittenPort(Struct, rename="camel"):
    """Source: ``v1.ContainerPort``."""

    host_port: int | None = None


class WrittenSecurity(Struct, rename="camel"):
    """Source: ``v1.SecurityContext``."""

    privileged: bool | None = None


class WrittenContainer(Struct, rename="camel"):
    """Source: ``v1.Container``."""

    name: str = ""
    restart_policy: str | None = None
    resources: ResourceRequirements | None = None
    env: list[WrittenVariable] | None = None
    ports: list[WrittenPort] | None = None
    security_context: WrittenSecurity | None = None

    @property
    def limits(self) -> Mapping[str, str | int | float]:
        return (self.resources and self.resources.limits) or {}

    @property
    def requests(self) -> Mapping[str, str | int | float]:
        """As they are written: without the limits that stand for those that are left out."""
        return (self.resources and self.resources.requests) or {}

    @property
    def is_sidecar(self) -> bool:
        """Of an init container: whether it stays beside the containers after it (KEP-753)."""
        return self.restart_policy == "Always"


class WrittenToleration(Struct, rename="camel"):
    """Source: ``v1.Toleration``."""

    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class WrittenRequirement(Struct, rename="camel"):
    """Source: ``v1.NodeSelectorRequirement``."""

    key: str = ""
    operator: str = ""
    values: list[str] | None = None


class NodeTerm(Struct, rename="camel"):
    """Source: ``v1.NodeSelectorTerm``: all its requirements hold, and one without any never does."""

    match_expressions: list[WrittenRequirement] | None = None
    match_fields: list[WrittenRequirement] | None = None


class NodeTerms(Struct, rename="camel"):
    """Source: ``v1.NodeSelector``: one of its terms holds."""

    node_selector_terms: list[NodeTerm] | None = None


class WrittenNodeAffinity(Struct):
    required: NodeTerms | None = field(name=_REQUIRED, default=None)


class WrittenPodAffinity(Struct):
    """Only whether anything is required: where the other pods are is not read."""

    required: list[Any] | None = field(name=_REQUIRED, default=None)


class WrittenAffinity(Struct, rename="camel"):
    """Source: ``v1.Affinity``."""

    node_affinity: WrittenNodeAffinity | None = None
    pod_affinity: WrittenPodAffinity | None = None
    pod_anti_affinity: WrittenPodAffinity | None = None


class WrittenSpread(Struct, rename="camel"):
    """Source: ``v1.TopologySpreadConstraint``."""

    topology_key: str = ""
    when_unsatisfiable: str = ""


class ClaimReference(Struct, rename="camel"):
    claim_name: str = ""


class WrittenVolume(Struct, rename="camel"):
    """Source: ``v1.Volume``."""

    persistent_volume_claim: ClaimReference | None = None


class WrittenGate(Struct):
    name: str = ""


class WrittenSpec(Struct, rename="camel"):
    """Source: ``v1.PodSpec``."""

    containers: list[WrittenContainer] | None = None
    init_containers: list[WrittenContainer] | None = None
    node_name: str | None = None
    scheduler_name: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: WrittenAffinity | None = None
    tolerations: list[WrittenToleration] | None = None
    topology_spread_constraints: list[WrittenSpread] | None = None
    volumes: list[WrittenVolume] | None = None
    scheduling_gates: list[WrittenGate] | None = None
    host_network: bool | None = None
    overhead: dict[str, str | int | float] | None = None
    resources: ResourceRequirements | None = None
    """Of the pod as a whole (KEP-2837): in place of the sums over its containers."""

    @property
    def all_containers(self) -> Sequence[WrittenContainer]:
        """In the order in which the kubelet starts them."""
        return (*(self.init_containers or ()), *(self.containers or ()))

    @property
    def terms(self) -> Sequence[NodeTerm] | None:
        """Of the node affinity that is required; None where none is."""
        node_affinity = self.affinity.node_affinity if self.affinity else None
        required = node_affinity.required if node_affinity else None
        return None if required is None else required.node_selector_terms or ()

    @property
    def claims(self) -> Sequence[str]:
        """The PersistentVolumeClaims that it mounts."""
        volumes = self.volumes or ()
        return [
            volume.persistent_volume_claim.claim_name for volume in volumes if volume.persistent_volume_claim
        ]


class WrittenCondition(Struct):
    """Source: ``v1.PodCondition``."""

    type: str = ""
    status: str = ""
    reason: str = ""


class WrittenStatus(Struct):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[WrittenCondition] | None = None


class WrittenMeta(Struct, rename="camel"):
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    finalizers: list[str] | None = None


class WrittenPod(Struct):
    """Source: ``v1.Pod``."""

    metadata: WrittenMeta = field(default_factory=WrittenMeta)
    spec: WrittenSpec = field(default_factory=WrittenSpec)
    status: WrittenStatus = field(default_factory=WrittenStatus)


def written_pod(pod: Json) -> WrittenPod:
    """Returns an empty pod where a field has another type than Kubernetes takes: the API server says so
    itself, by its name."""
    try:
        return msgspec.convert(pod, WrittenPod)
    except msgspec.ValidationError:
        return WrittenPod()
