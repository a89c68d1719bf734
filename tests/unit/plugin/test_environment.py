"""A container gets the card that its units lie on: nothing else is looked at."""

import pytest
from tests.samples.plugin import GIB, card, environment, ids, layout

from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import WHOLE_CARD, CardPart, Unit
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout, lay_out

LAYOUT = layout(reserved=2**30)


def test_the_variables_follow_from_the_units() -> None:
    assert environment(ids(17, 16, 30), LAYOUT, GPUSHARE) == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-1",
        "GPUSHARE_CARD": "GPU-1",
        "GPUSHARE_CARD_INDEX": "1",
        "GPUSHARE_UNIT": "1Gi",
        "GPUSHARE_UNITS": "3",
        "GPUSHARE_MEMORY_MIB": "3072",
        "GPUSHARE_CARD_MEMORY_MIB": "16384",
    }


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param(
            ids(0, 1, 16), "asked 3 units of one card, the kubelet chose 2 of GPU-0, 1 of GPU-1", id="two"
        ),
        pytest.param(["no"], "'no' names no unit", id="not an ID"),
        pytest.param(ids(99), "'ABj' is a unit of no card of this node; it has 30 units", id="no such unit"),
        pytest.param([], "asked 0 units", id="none"),
    ],
)
def test_units_that_are_not_of_one_card_are_refused(asked: list[str], message: str) -> None:
    with pytest.raises(UnusableUnitsError) as refusal:
        environment(asked, LAYOUT, GPUSHARE)
    assert message in str(refusal.value)


def parts(unit: Unit, *memories: int) -> Layout:
    return lay_out([card(index, memory=each * GIB) for index, each in enumerate(memories)], unit, reserved=0)


SLICES = parts(CardPart(ResourceClass.SLICE, 2), 16, 8, 16)


def test_slices_name_every_card_with_its_part_of_its_memory() -> None:
    assert environment(ids(4, 3, 0), SLICES, GPUSHARE) == {
        "NVIDIA_VISIBLE_DEVICES": "GPU-0,GPU-1,GPU-2",
        "GPUSHARE_CARD": "GPU-0,GPU-1,GPU-2",
        "GPUSHARE_CARD_INDEX": "0,1,2",
        "GPUSHARE_UNIT": "1/2 card",
        "GPUSHARE_UNITS": "3",
        "GPUSHARE_MEMORY_MIB": "8192,4096,8192",
        "GPUSHARE_CARD_MEMORY_MIB": "16384,8192,16384",
    }


def test_of_what_is_reserved_nobody_gets_a_part() -> None:
    slices = lay_out([card(0), card(1, memory=8 * GIB)], CardPart(ResourceClass.SLICE, 2), reserved=GIB)
    variables = environment(ids(0, 2), slices, GPUSHARE)
    assert variables["GPUSHARE_MEMORY_MIB"] == "7680,3584"
    assert variables["GPUSHARE_CARD_MEMORY_MIB"] == "16384,8192"


def test_whole_cards_come_with_all_their_memory() -> None:
    variables = environment(ids(1, 0), parts(WHOLE_CARD, 16, 8), GPUSHARE)
    assert variables["NVIDIA_VISIBLE_DEVICES"] == "GPU-0,GPU-1"
    assert variables["GPUSHARE_MEMORY_MIB"] == variables["GPUSHARE_CARD_MEMORY_MIB"] == "16384,8192"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param(
            ids(0, 1), "asked 2 units of as many cards, the kubelet chose 2 of GPU-0", id="two of one card"
        ),
        pytest.param(
            ids(0, 1, 2),
            "asked 3 units of as many cards, the kubelet chose 2 of GPU-0, 1 of GPU-1",
            id="two of one of two cards",
        ),
        pytest.param([], "asked 0 units", id="none"),
    ],
)
def test_two_slices_of_one_card_are_refused(asked: list[str], message: str) -> None:
    with pytest.raises(UnusableUnitsError) as refusal:
        environment(asked, SLICES, GPUSHARE)
    assert message in str(refusal.value)
