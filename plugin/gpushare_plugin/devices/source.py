"""Which source of devices a node's spec asks for."""

from gpushare_core.api.policy import Devices, Source
from gpushare_plugin.devices.cards import DeviceSource
from gpushare_plugin.devices.simulated import SimulatedSource


def open_source(node: str, devices: Devices) -> DeviceSource | None:
    """The source, or None where this version has none of that kind."""
    if devices.source is Source.SIMULATED:
        return SimulatedSource(node, devices.simulated)
    return None
