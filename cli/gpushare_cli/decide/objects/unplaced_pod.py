"""A pod that has no node yet, as far as it is counted."""

from msgspec import Struct, field

from gpushare_core.api.names import GROUP
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
    def wanted(self) -> frozenset[str]:
        """The extended resources for which it waits: those of all dialects, and all whose names begin as our
        own do, such as misspelt ones."""
        if self.spec.node_name or self.metadata.deletion_timestamp:
            return frozenset()
        containers = (*(self.spec.containers or ()), *(self.spec.init_containers or ()))
        limits = (container.resources.limits or {} for container in containers if container.resources)
        names = (name for limit in limits for name in limit)
        return frozenset(name for name in names if name in OWN_RESOURCES or name.startswith(f"{GROUP}/"))
