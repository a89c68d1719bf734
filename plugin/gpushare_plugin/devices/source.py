"""Which source of devices a node's spec asks for."""

from gpushare_core.api.enums import Source
from gpushare_core.api.policy import Devices
from gpushare_plugin.devices.card import DeviceSource


def open_source(node: str, devices: Devices) -> DeviceSource | None:
    """Returns the source that ``devices`` asks for, or None where this version has none of that kind.

    Each source is imported when it is asked for: a node does not pay with memory for the library of another.
    """
    if devices.source is Source.SIMULATED:
        from gpushare_plugin.devices.simulated import SimulatedSource

        return SimulatedSource(node, devices.simulated)
    return None
