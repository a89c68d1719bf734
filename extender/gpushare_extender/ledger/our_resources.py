"""Which extended resources are ours. Pure."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from gpushare_core.dialects.table import RESOURCES, SHARED_RESOURCES
from gpushare_core.placement.requests import ResourceClass


class OurResources:
    """All names of all dialects, served or not: a pod that asks for one is let go nowhere else.

    But one that others' plugins offer as well is ours only while a GPUShareNode has it.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, set[str]] = {name: set() for name in SHARED_RESOURCES}
        """Shared name -> nodes that have it."""
        self.names: Mapping[str, ResourceClass] = self._names()
        """Name -> what it stands for."""

    def set_node(self, node: str, served: Collection[str]) -> None:
        """The GPUShareNode of ``node`` has the resources ``served``; without one it has none."""
        for name, nodes in self._nodes.items():
            (nodes.add if name in served else nodes.discard)(node)
        if any(bool(nodes) is not (name in self.names) for name, nodes in self._nodes.items()):
            self.names = self._names()

    def _names(self) -> Mapping[str, ResourceClass]:
        absent = {name for name, nodes in self._nodes.items() if not nodes}
        return MappingProxyType({name: each for name, each in RESOURCES.items() if name not in absent})
