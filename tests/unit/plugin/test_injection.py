"""What comes with a container's units: a function of them, of the cards they lie on, and of the policy."""

from dataclasses import replace

import pytest
from tests.samples.inventory import ENFLAME
from tests.samples.plugin import card, environment, ids, layout

from gpushare_core.api.share_node import Devices
from gpushare_core.dialects.enflame import ENFLAME as ENFLAME_DIALECT
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.units import WHOLE_CARD
from gpushare_plugin.decide.admit.injection import ContainerAnswer, container_answer
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import lay_out
from gpushare_plugin.devices.card import DeviceNode, Equipment, HostMount
from gpushare_plugin.devices.inventory.inventory_file import read_inventory

NVIDIA = layout()
CDI = Devices.from_json({"injection": "CDI"})
CARDS = read_inventory(ENFLAME.encode()).cards
INVENTORY = layout(*CARDS)
WHOLE = lay_out(CARDS, WHOLE_CARD, reserved=0)


def test_by_environment_the_variables_are_all() -> None:
    answer = container_answer(ids(0), NVIDIA, GPUSHARE, Devices())
    assert answer == ContainerAnswer(variables=environment(ids(0), NVIDIA, GPUSHARE))
    assert answer.variables["NVIDIA_VISIBLE_DEVICES"] == "GPU-0"


def test_by_cdi_cards_go_by_qualified_names_and_nvidias_runtime_adds_none() -> None:
    answer = container_answer(ids(16), NVIDIA, GPUSHARE, CDI)
    assert answer.cdi_devices == ("nvidia.com/gpu=GPU-1",)
    assert answer.variables == {
        **environment(ids(16), NVIDIA, GPUSHARE),
        "NVIDIA_VISIBLE_DEVICES": "void",
    }


def test_whole_cards_by_cdi_are_all_named() -> None:
    cards = lay_out([card(0), card(1)], WHOLE_CARD, reserved=0)
    answer = container_answer(ids(0, 1), cards, GPUSHARE, CDI)
    assert answer.cdi_devices == ("nvidia.com/gpu=GPU-0", "nvidia.com/gpu=GPU-1")


def test_the_policy_names_the_kind_and_an_inventory_its_own() -> None:
    devices = Devices.from_json({"injection": "CDI", "cdiKind": "example.com/card"})
    assert container_answer(ids(0), NVIDIA, GPUSHARE, devices).cdi_devices == ("example.com/card=GPU-0",)
    answer = container_answer(ids(0), INVENTORY, GPUSHARE, devices)
    assert answer.cdi_devices == ("enflame.com/gcu=gcu0",)
    assert (answer.device_nodes, answer.mounts) == ((), ()), "the CDI specification has them"
    assert answer.variables["ENFLAME_LOG"] == "1"


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("devices", [Devices(), CDI], ids=["Environment", "CDI"])
def test_the_books_find_the_card_in_every_dialect(dialect: object, devices: Devices) -> None:
    assert isinstance(dialect, type(GPUSHARE))
    answer = container_answer(ids(16, 17), INVENTORY, dialect, devices)
    assert answer.variables["GPUSHARE_CARD"] == "GCU-U53000090105"


def test_an_inventorys_card_comes_with_its_device_nodes_mounts_and_the_vendors_variable() -> None:
    answer = container_answer(ids(16), INVENTORY, ENFLAME_DIALECT, Devices())
    assert answer.device_nodes == (
        DeviceNode("/dev/gcuctl", "/dev/gcuctl"),
        DeviceNode("/dev/gcu1", "/dev/gcu1"),
    )
    assert answer.mounts == (HostMount("/usr/lib/libefml.so", "/usr/lib/libefml.so"),)
    assert answer.variables["GCU_VISIBLE"] == "1"
    assert "NVIDIA_VISIBLE_DEVICES" not in container_answer(ids(16), INVENTORY, GPUSHARE, Devices()).variables
    assert answer.cdi_devices == ()


def test_of_several_cards_what_they_share_comes_once() -> None:
    answer = container_answer(ids(0, 1), WHOLE, GPUSHARE, Devices())
    assert [device_node.container_path for device_node in answer.device_nodes] == [
        "/dev/gcuctl",
        "/dev/gcu0",
        "/dev/gcu1",
    ]
    assert answer.variables["GCU_VISIBLE"] == "0,1"


def test_cards_that_want_the_same_place_in_one_container_are_refused() -> None:
    moved = Equipment(device_nodes=(DeviceNode("/dev/gcu1", "/dev/gcu0"),))
    cards = lay_out([CARDS[0], replace(CARDS[1], equipment=moved)], WHOLE_CARD, reserved=0)
    with pytest.raises(UnusableUnitsError, match="different things at /dev/gcu0"):
        container_answer(ids(0, 1), cards, GPUSHARE, Devices())


def test_our_variables_win_over_those_of_an_inventory() -> None:
    loud = Equipment(variables=(("ALIYUN_COM_GPU_MEM_IDX", "7"),), runtime_variable="NVIDIA_VISIBLE_DEVICES")
    cards = [replace(plain, equipment=replace(loud, runtime_name=plain.uuid)) for plain in (card(0), card(1))]
    answer = container_answer(ids(0), layout(*cards), DIALECTS["aliyun.com"], Devices())
    assert answer.variables["ALIYUN_COM_GPU_MEM_IDX"] == "0"
    assert answer.variables["NVIDIA_VISIBLE_DEVICES"] == "GPU-0"
