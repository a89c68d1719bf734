"""Extended resources: which of them are ours, and the greatest amount that fits each node. Pure."""

from collections.abc import Collection, Mapping
from types import MappingProxyType

from gpushare_core.dialects.table import RESOURCES, SHARED_RESOURCES
from gpushare_core.placement.requests import ResourceClass


class OurResources:
    """The names of all dialects, whether a node serves them or not: nobody else may let such a pod go. A name
    that another device plugin offers as well is ours only while a GPUShareNode has it."""

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
        ours = {name: resource for name, resource in RESOURCES.items() if name not in absent}
        return MappingProxyType(ours)


class Greatest:
    """The greatest amount of each resource. Nodes have few different amounts: these are looked through for
    the greatest of all, not the nodes."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, int]] = {name: {} for name in RESOURCES}
        self._nodes_with: dict[str, dict[int, int]] = {name: {} for name in RESOURCES}
        """Name of a resource -> amount -> how many nodes have it."""
        self.by_name: Mapping[str, Mapping[str, int]] = MappingProxyType(self._by_name)
        """Name of a resource -> node that serves it and takes pods of ours -> the amount."""

    def set(self, name: str, node: str, amount: int) -> int:
        """Returns what it was before; 0 where the node was not known."""
        before = self._by_name[name].get(node)
        if before != amount:
            self._uncount(name, before)
            self._by_name[name][node] = amount
            counts = self._nodes_with[name]
            counts[amount] = counts.get(amount, 0) + 1
        return before or 0

    def drop(self, name: str, node: str) -> None:
        """The node serves the resource no more."""
        self._uncount(name, self._by_name[name].pop(node))

    def most(self, name: str) -> int:
        """Returns the greatest amount that fits any node; 0 where there is none."""
        return max(self._nodes_with[name], default=0)

    def _uncount(self, name: str, amount: int | None) -> None:
        if amount is None:
            return
        counts = self._nodes_with[name]
        counts[amount] -= 1
        if not counts[amount]:
            del counts[amount]
