"""The sources that are said to be served are there."""

from gpushare_core.api.enums import Source
from gpushare_core.api.policy import Devices, SimulatedCards
from gpushare_core.api.served import SOURCES
from gpushare_plugin.devices.nvml import NvmlSource
from gpushare_plugin.devices.simulated import SimulatedSource
from gpushare_plugin.devices.source import DeviceSources

GROUPS = [SimulatedCards(count=1, memory="16Gi")]


NVML = Devices(source=Source.NVML)
SIMULATED = Devices(source=Source.SIMULATED, simulated=GROUPS)


def test_what_is_asked_for_is_opened() -> None:
    sources = DeviceSources()
    assert isinstance(sources.open("gpu-1", SIMULATED), SimulatedSource)
    assert isinstance(sources.open("gpu-1", NVML), NvmlSource)


def test_nvml_has_one_handle_for_the_life_of_the_process() -> None:
    sources = DeviceSources()
    first = sources.open("gpu-1", NVML)
    sources.open("gpu-1", SIMULATED)
    assert sources.open("gpu-1", NVML) is first


def test_every_source_that_is_said_to_be_served_is_there_and_no_other() -> None:
    asked = {each: Devices(source=each, simulated=GROUPS) for each in Source}
    there = {each for each, devices in asked.items() if DeviceSources().open("gpu-1", devices)}
    assert there == SOURCES
