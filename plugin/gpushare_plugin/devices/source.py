"""Which source of devices a node's spec asks for: a case for each."""

from collections.abc import Callable
from typing import Protocol

from gpushare_core.api.enums import Source
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.devices.card import DeviceSource
from gpushare_plugin.devices.use import LimitSource, UseSource

Happened = Callable[[], None]
"""Called when a source has something new before it is asked again."""


class SourceFamily(Protocol):
    """The sources of one kind in this process: what they keep, they keep while other kinds are opened."""

    def open(self, share_node: GPUShareNode) -> DeviceSource:
        """Returns the source of cards by the node's spec and annotations."""

    def open_use(self) -> UseSource | None:
        """Returns what measures the memory in use, or None where nothing does."""

    def open_limits(self) -> LimitSource | None:
        """Returns what says which limits are in force, or None where nothing can limit."""


def _new_family(source: Source, happened: Happened) -> SourceFamily:
    """Imports a family when it is asked for: a node does not pay with memory for the library of another."""
    match source:
        case Source.NVML:
            from gpushare_plugin.devices.nvml.source import NvmlFamily

            return NvmlFamily(happened)
        case Source.INVENTORY:
            from gpushare_plugin.devices.inventory.source import InventoryFamily

            return InventoryFamily()
        case Source.SIMULATED:
            from gpushare_plugin.devices.simulated.source import SimulatedFamily

            return SimulatedFamily()


class DeviceSources:
    """The sources of this process. Make one."""

    def __init__(self, happened: Happened = lambda: None) -> None:
        self._happened = happened
        self._families: dict[Source, SourceFamily] = {}

    def open(self, share_node: GPUShareNode) -> DeviceSource:
        return self._family(share_node).open(share_node)

    def open_use(self, share_node: GPUShareNode) -> UseSource | None:
        return self._family(share_node).open_use()

    def open_limits(self, share_node: GPUShareNode) -> LimitSource | None:
        return self._family(share_node).open_limits()

    def _family(self, share_node: GPUShareNode) -> SourceFamily:
        source = share_node.spec.devices.source
        if source not in self._families:
            self._families[source] = _new_family(source, self._happened)
        return self._families[source]
