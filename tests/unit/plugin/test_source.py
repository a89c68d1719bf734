"""The sources that are said to be served are there."""

from tests.samples.plugin import share_node

from gpushare_core.api.enums import Source
from gpushare_core.api.served import SOURCES
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.devices.nvml import NvmlSource
from gpushare_plugin.devices.simulated import SimulatedSource
from gpushare_plugin.devices.source import DeviceSources


def asking(source: Source) -> GPUShareNode:
    return share_node(devices={"source": source, "simulated": [{"count": 1, "memory": "16Gi"}]})


NVML, SIMULATED = asking(Source.NVML), asking(Source.SIMULATED)


def test_what_is_asked_for_is_opened() -> None:
    sources = DeviceSources()
    assert isinstance(sources.open(SIMULATED), SimulatedSource)
    assert isinstance(sources.open(NVML), NvmlSource)


def test_nvml_has_one_handle_for_the_life_of_the_process() -> None:
    sources = DeviceSources()
    first = sources.open(NVML)
    sources.open(SIMULATED)
    assert sources.open(NVML) is first


def test_every_source_that_is_said_to_be_served_is_there_and_no_other() -> None:
    there = {each for each in Source if DeviceSources().open(asking(each))}
    assert there == SOURCES
