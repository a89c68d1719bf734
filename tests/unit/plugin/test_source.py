"""The sources that are said to be served are there."""

from gpushare_core.api.enums import Source
from gpushare_core.api.policy import Devices, SimulatedCards
from gpushare_core.api.served import SOURCES
from gpushare_plugin.devices.simulated import SimulatedSource
from gpushare_plugin.devices.source import open_source

GROUPS = [SimulatedCards(count=1, memory="16Gi")]


def test_only_the_simulated_source_is_there() -> None:
    simulated = Devices(source=Source.SIMULATED, simulated=GROUPS)
    assert isinstance(open_source("gpu-1", simulated), SimulatedSource)
    assert open_source("gpu-1", Devices(source=Source.NVML)) is None


def test_every_source_that_is_said_to_be_served_is_there_and_no_other() -> None:
    there = {each for each in Source if open_source("gpu-1", Devices(source=each, simulated=GROUPS))}
    assert there == SOURCES
