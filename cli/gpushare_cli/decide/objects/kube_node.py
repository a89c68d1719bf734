"""A Node as people ask about it: what decides whether a pod may go there."""

from typing import Any

from msgspec import Struct, field


class KubeNodeMeta(Struct, rename="camel"):
    name: str
    labels: dict[str, str] | None = None


class KubeTaint(Struct, rename="camel"):
    """Source: ``v1.Taint``."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class KubeNodeSpec(Struct, rename="camel"):
    unschedulable: bool | None = None
    taints: list[KubeTaint] | None = None


class KubeNodeCondition(Struct, rename="camel"):
    type: str = ""
    status: str = ""
    message: str = ""


class KubeNodeStatus(Struct, rename="camel"):
    allocatable: dict[str, Any] | None = None
    conditions: list[KubeNodeCondition] | None = None


class KubeNode(Struct):
    """Source: ``v1.Node``."""

    metadata: KubeNodeMeta
    spec: KubeNodeSpec = field(default_factory=KubeNodeSpec)
    status: KubeNodeStatus = field(default_factory=KubeNodeStatus)

    @property
    def name(self) -> str:
        return self.metadata.name
