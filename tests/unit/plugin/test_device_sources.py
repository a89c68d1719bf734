"""Every source that a policy may ask for is there."""

from tests.samples.plugin import share_node

from gpushare_core.api.enums import Source
from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.devices.inventory.source import InventorySource
from gpushare_plugin.devices.nvml.source import NvmlSource
from gpushare_plugin.devices.simulated.source import SimulatedSource
from gpushare_plugin.devices.source import DeviceSources


def asking(source: Source) -> GPUShareNode:
    return share_node(devices={"source": source, "simulated": [{"count": 1, "memory": "16Gi"}]})


NVML, SIMULATED, INVENTORY = (asking(source) for source in Source)


def test_what_is_asked_for_is_opened() -> None:
    sources = DeviceSources()
    assert isinstance(sources.open(SIMULATED), SimulatedSource)
    assert isinstance(sources.open(NVML), NvmlSource)


def test_nvml_has_one_handle_for_the_life_of_the_process() -> None:
    sources = DeviceSources()
    first = sources.open(NVML)
    sources.open(SIMULATED)
    assert sources.open(NVML) is first


def test_what_an_inventory_said_last_is_kept_until_another_file_is_asked_for() -> None:
    sources = DeviceSources()
    first = sources.open(INVENTORY)
    assert isinstance(first, InventorySource)
    sources.open(NVML)
    assert sources.open(INVENTORY) is first
    other = share_node(devices={"source": "Inventory", "inventoryPath": "/etc/gpushare/other.yaml"})
    assert sources.open(other) is not first
