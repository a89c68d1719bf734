"""The objects of a cluster, as far as they decide whether gpushare can be used there."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from gpushare_core.api.names import MIRROR_ANNOTATION
from gpushare_core.placement.quantity import read_amount

SOURCE_ANNOTATION = "kubernetes.io/config.source"
"""By a kubelet, on the mirror of a static pod: ``file``, or ``http`` where it fetches its pods."""

CONFIG_FLAG = "--config="
OUR_FOLDER = "/etc/kubernetes/gpushare/"


class PreflightMeta(Struct):
    name: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class NodeMachine(Struct, rename="camel"):
    """Source: ``v1.NodeSystemInfo``."""

    architecture: str = ""
    operating_system: str = ""
    os_image: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""
    """Such as ``containerd://2.1.4``."""
    kubelet_version: str = ""


class _Provider(Struct):
    provider_id: str = field(default="", name="providerID")


class _NodeFacts(Struct, rename="camel"):
    capacity: dict[str, Any] | None = None
    allocatable: dict[str, Any] | None = None
    node_info: NodeMachine = field(default_factory=NodeMachine)


class PreflightNode(Struct):
    """Source: ``v1.Node``."""

    metadata: PreflightMeta
    spec: _Provider = field(default_factory=_Provider)
    status: _NodeFacts = field(default_factory=_NodeFacts)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels or {}

    @property
    def machine(self) -> NodeMachine:
        return self.status.node_info

    def has(self, resource: str) -> bool:
        """Whether a device plugin has it here, sick devices included. A kubelet says so for five minutes
        after the plugin has gone."""
        return _is_positive(self.status.capacity, resource)

    def offers(self, resource: str) -> bool:
        """Whether pods can have it here."""
        return _is_positive(self.status.allocatable, resource)


def _is_positive(amounts: Mapping[str, Any] | None, resource: str) -> bool:
    amount = (amounts or {}).get(resource)
    return isinstance(amount, str) and read_amount(amount) > 0


class _ProgramOfPod(Struct):
    image: str = ""
    command: list[str] | None = None
    args: list[str] | None = None


class _SchedulerSpec(Struct, rename="camel"):
    node_name: str = ""
    containers: list[_ProgramOfPod] | None = None


class KubeSchedulerPod(Struct):
    """A pod of the cluster's own kube-scheduler."""

    metadata: PreflightMeta
    spec: _SchedulerSpec = field(default_factory=_SchedulerSpec)

    @property
    def node(self) -> str:
        return self.spec.node_name

    @property
    def is_static(self) -> bool:
        return MIRROR_ANNOTATION in (self.metadata.annotations or {})

    @property
    def is_from_file(self) -> bool:
        return (self.metadata.annotations or {}).get(SOURCE_ANNOTATION, "file") == "file"

    @property
    def image(self) -> str:
        return next((container.image for container in self.spec.containers or ()), "")

    @property
    def configs(self) -> list[str]:
        """Paths, the one that counts last."""
        return [flag.removeprefix(CONFIG_FLAG) for flag in self.flags if flag.startswith(CONFIG_FLAG)]

    @property
    def is_connected(self) -> bool:
        return any(path.startswith(OUR_FOLDER) for path in self.configs)

    @property
    def own_config(self) -> str:
        """The configuration that people have given it; empty: none."""
        return next((path for path in reversed(self.configs) if not path.startswith(OUR_FOLDER)), "")

    @property
    def flags(self) -> list[str]:
        containers = self.spec.containers or ()
        return [word for one in containers for word in (*(one.command or ()), *(one.args or ()))]


class _PodOfTemplate(Struct):
    containers: list[_ProgramOfPod] | None = None


class _PodTemplate(Struct):
    spec: _PodOfTemplate = field(default_factory=_PodOfTemplate)


class _TemplateHolder(Struct):
    template: _PodTemplate = field(default_factory=_PodTemplate)


class ObservedDaemonSet(Struct):
    """Source: ``apps/v1`` DaemonSet."""

    metadata: PreflightMeta
    spec: _TemplateHolder = field(default_factory=_TemplateHolder)

    @property
    def full_name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def images(self) -> list[str]:
        return [container.image for container in self.spec.template.spec.containers or ()]


class ObservedRuntimeClass(Struct):
    """Source: ``node.k8s.io/v1`` RuntimeClass."""

    metadata: PreflightMeta
    handler: str = ""


class BesideObject(Struct):
    """A Namespace, or a ResourceQuota of which only the name counts."""

    metadata: PreflightMeta
