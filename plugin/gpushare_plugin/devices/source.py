"""Which source of devices a node's spec asks for."""

from gpushare_core.api.enums import Source
from gpushare_core.api.policy import Devices
from gpushare_plugin.devices.card import DeviceSource


class DeviceSources:
    """The sources of this process. Make one: it keeps NVML's only handle, also while another is asked for.

    Each source is imported when it is asked for: a node does not pay with memory for the library of another.
    """

    def __init__(self) -> None:
        self._nvml: DeviceSource | None = None

    def open(self, node: str, devices: Devices) -> DeviceSource | None:
        """Returns the source that ``devices`` asks for, or None where this version has none of that kind."""
        if devices.source is Source.SIMULATED:
            from gpushare_plugin.devices.simulated import SimulatedSource

            return SimulatedSource(node, devices.simulated)
        if devices.source is Source.NVML:
            self._nvml = self._nvml or _nvml_source()
            return self._nvml
        return None


def _nvml_source() -> DeviceSource:
    from gpushare_plugin.devices.nvml import NvmlSource
    from gpushare_plugin.devices.nvml_library import NvmlLibrary

    return NvmlSource(NvmlLibrary())
