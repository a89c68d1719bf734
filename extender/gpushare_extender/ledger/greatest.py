"""The greatest amount of each resource that fits each node, and that fits any. Pure."""

from collections.abc import Mapping
from types import MappingProxyType

from gpushare_core.dialects.table import RESOURCES


class Greatest:
    """Nodes have few different amounts: whether any node has so much is told by these, not by all nodes."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[str, int]] = {name: {} for name in RESOURCES}
        self._nodes_with: dict[str, dict[int, int]] = {name: {} for name in RESOURCES}
        """Name of a resource -> amount -> how many nodes have it."""
        self.by_name: Mapping[str, Mapping[str, int]] = MappingProxyType(self._by_name)
        """Name of an extended resource -> node that serves it and takes pods of ours -> the amount."""

    def set(self, name: str, node: str, amount: int) -> int:
        """Returns what it was before; 0 where the node was not known."""
        before = self._by_name[name].get(node)
        if before != amount:
            self._leave(name, before)
            self._by_name[name][node] = amount
            counts = self._nodes_with[name]
            counts[amount] = counts.get(amount, 0) + 1
        return before or 0

    def drop(self, name: str, node: str) -> None:
        """The node serves the resource no more."""
        self._leave(name, self._by_name[name].pop(node))

    def most(self, name: str) -> int:
        """Returns the greatest amount that fits any node; 0 where there is none."""
        return max(self._nodes_with[name], default=0)

    def _leave(self, name: str, amount: int | None) -> None:
        if amount is None:
            return
        counts = self._nodes_with[name]
        counts[amount] -= 1
        if not counts[amount]:
            del counts[amount]
