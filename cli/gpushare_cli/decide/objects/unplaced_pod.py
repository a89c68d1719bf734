"""A pod that has no node yet, as far as it is counted."""

from msgspec import Struct, field

from gpushare_core.dialects.table import RESOURCES

OWN_RESOURCES = frozenset(RESOURCES)
"""Extended resources by which pods ask for parts of cards, in any dialect."""


class _AskedResources(Struct):
    limits: dict[str, object] | None = None


class _AskingContainer(Struct):
    resources: _AskedResources | None = None


class _UnplacedSpec(Struct, rename="camel"):
    node_name: str = ""
    containers: list[_AskingContainer] | None = None
    init_containers: list[_AskingContainer] | None = None


class _UnplacedMeta(Struct, rename="camel"):
    name: str
    namespace: str = ""
    creation_timestamp: str = ""
    deletion_timestamp: str = ""


class UnplacedPod(Struct):
    metadata: _UnplacedMeta
    spec: _UnplacedSpec = field(default_factory=_UnplacedSpec)

    @property
    def name(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def waits_for_units(self) -> bool:
        if self.spec.node_name or self.metadata.deletion_timestamp:
            return False
        containers = (*(self.spec.containers or ()), *(self.spec.init_containers or ()))
        limits = (container.resources.limits for container in containers if container.resources)
        return any(OWN_RESOURCES & (limit or {}).keys() for limit in limits)
