"""Which source of devices a node's spec asks for."""

from collections.abc import Callable
from pathlib import Path

from gpushare_core.api.enums import Source
from gpushare_core.api.names import SIMULATE_ANNOTATION
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.devices.card import DeviceSource
from gpushare_plugin.devices.use import UseSource


class DeviceSources:
    """The sources of this process. Make one: it keeps NVML's only handle, also while another is asked for,
    and what the node's inventory said last.

    Each source is imported when it is asked for: a node does not pay with memory for the library of another.
    """

    def __init__(self, happened: Callable[[], None] = lambda: None) -> None:
        """``happened`` is called when a source has something new before it is asked again."""
        self._happened = happened
        self._nvml: DeviceSource | None = None
        self._inventory: tuple[str, DeviceSource] | None = None
        self._simulated: str | None = None
        """To simulated cards, when their source was opened last."""
        self._nvml_use: UseSource | None = None

    def open(self, share_node: GPUShareNode) -> DeviceSource:
        """Returns the source that its spec asks for."""
        devices = share_node.spec.devices
        if devices.source is Source.SIMULATED:
            from gpushare_plugin.devices.simulated.source import SimulatedSource

            happening = share_node.metadata.annotations.get(SIMULATE_ANNOTATION, "")
            before, self._simulated = self._simulated, happening
            return SimulatedSource(share_node.metadata.name, devices.simulated, happening, before=before)
        if devices.source is Source.INVENTORY:
            return self._open_inventory(devices.inventory_path)
        return self._open_nvml()

    def _open_nvml(self) -> DeviceSource:
        if self._nvml is None:
            self._nvml, self._nvml_use = _nvml_sources(self._happened)
        return self._nvml

    def _open_inventory(self, path: str) -> DeviceSource:
        if self._inventory is None or self._inventory[0] != path:
            from gpushare_plugin.devices.inventory.source import InventorySource

            self._inventory = path, InventorySource(Path(path))
        return self._inventory[1]

    def open_use(self, share_node: GPUShareNode) -> UseSource | None:
        """Returns what tells how much is in use, or None where nothing does; NVML only once it told cards."""
        if share_node.spec.devices.source is Source.SIMULATED:
            from gpushare_plugin.devices.simulated.use import SimulatedUse

            return SimulatedUse()
        return self._nvml_use if share_node.spec.devices.source is Source.NVML else None


def _nvml_sources(happened: Callable[[], None]) -> tuple[DeviceSource, UseSource]:
    """One thread for both: the library takes one call at a time."""
    from gpushare_plugin.devices.nvml.library import NvmlLibrary
    from gpushare_plugin.devices.nvml.source import NvmlSource
    from gpushare_plugin.devices.nvml.use import NvmlUse

    library = NvmlLibrary()
    source = NvmlSource(library, happened=happened)
    return source, NvmlUse(library, source)
