"""Devices of a replaced system's plugin: told by their ID, counted on the card of their container."""

from array import array
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import GIB, card, ids, layout

from gpushare_core.dialects.table import DIALECTS
from gpushare_core.placement.quantity import MIB
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import WHOLE_CARD, CardPart
from gpushare_plugin.decide.units.foreign_units import ForeignUnits, foreign_doubt, foreign_shares, sort_ids
from gpushare_plugin.decide.units.layout import lay_out
from gpushare_plugin.decide.units.unit_ids import CAPACITY, encode_id

ALIYUN, VOLCANO, WHOLE = "aliyun.com/gpu-mem", "volcano.sh/gpu-memory", "nvidia.com/gpu"


def units(
    count: int = 4, on: str = "0", *, first: int = 0, size: int = 0, name: str = ALIYUN
) -> ForeignUnits:
    return ForeignUnits(name, {"GPU-9-_-": array("I", range(first, first + count))}, on, size)


@pytest.mark.parametrize(
    ("name", "foreign"),
    [
        pytest.param(ALIYUN, ["GPU-1-_-0", "GPU-1-_-12", "GPU-2-_-3"], id="aliyun, of two cards"),
        pytest.param(VOLCANO, ["0-0", "0-15", "12-3"], id="volcano"),
        pytest.param("enflame.com/gcu-memory", ["GCU-U53000090104-_-4"], id="enflame"),
        pytest.param(ALIYUN, ["GPU-1-_-007", "odd one"], id="of no known shape"),
        pytest.param(WHOLE, ["GPU-8f5e", "GPU-8f5e::3", "MIG-77"], id="whole cards"),
    ],
)
def test_the_ids_of_another_plugin_are_kept_as_they_are(name: str, foreign: list[str]) -> None:
    own, found = sort_ids(name, [*ids(0, 17), *foreign])
    assert list(own) == [0, 17]
    assert sorted(text for devices in found for text in devices.ids) == sorted(foreign)
    assert sum(devices.count for devices in found) == len(foreign)


def test_what_is_unknown_under_our_own_names_is_no_unit() -> None:
    assert sort_ids("gpushare.io/memory", ["GPU-1-_-0", *ids(3), "odd one"]) == (array("I", [3]), ())


@pytest.mark.parametrize("name", [dialect.memory_resource for dialect in DIALECTS.values()])
@given(number=st.integers(0, CAPACITY - 1))
def test_no_unit_of_ours_is_taken_for_foreign(name: str, number: int) -> None:
    assert sort_ids(name, [encode_id(number)]) == (array("I", [number]), ())


@pytest.mark.parametrize(
    ("foreign", "expected"),
    [
        pytest.param(units(on="0"), {"GPU-0": 4}, id="by index"),
        pytest.param(units(on="GPU-1"), {"GPU-1": 4}, id="by UUID"),
        pytest.param(units(on=""), {"GPU-0": 4, "GPU-1": 4}, id="unknown: on each"),
        pytest.param(units(on="GPU-7"), {}, id="a card that is not there"),
        pytest.param(units(on="7"), {"GPU-0": 4, "GPU-1": 4}, id="an index from before a card went: on each"),
        pytest.param(units(on="-1"), {}, id="no card"),
        pytest.param(units(size=GIB), {"GPU-0": 4}, id="of the same size"),
        pytest.param(units(4097, size=MIB), {"GPU-0": 5}, id="smaller ones, rounded up"),
        pytest.param(units(2, size=4 * GIB), {"GPU-0": 8}, id="larger ones"),
        pytest.param(units(1, on="GPU-1", name=WHOLE), {"GPU-1": 16}, id="a whole card"),
        pytest.param(units(3, on="GPU-1", name=WHOLE), {"GPU-1": 16}, id="a card that is shared whole"),
    ],
)
def test_they_count_on_the_card_of_their_container(foreign: ForeignUnits, expected: dict[str, int]) -> None:
    assert foreign_shares([foreign], layout()) == expected


@pytest.mark.parametrize(
    ("made", "foreign", "expected"),
    [
        pytest.param(CardPart(ResourceClass.SLICE, 4), units(), 4, id="of unknown size: all slices"),
        pytest.param(CardPart(ResourceClass.SLICE, 4), units(size=GIB), 1, id="a quarter"),
        pytest.param(CardPart(ResourceClass.SLICE, 4), units(5, size=GIB), 2, id="more than a quarter"),
        pytest.param(WHOLE_CARD, units(1, size=GIB), 1, id="the whole card"),
    ],
)
def test_on_a_node_that_shares_in_parts_they_take_as_many_as_they_need(
    made: CardPart, foreign: ForeignUnits, expected: int
) -> None:
    assert foreign_shares([foreign], lay_out([card(0)], made, reserved=0)) == {"GPU-0": expected}


def test_a_device_that_an_init_container_lends_counts_once() -> None:
    assert foreign_shares([units(4), units(6), units(2, first=8)], layout()) == {"GPU-0": 8}


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(1, 8)), max_size=6))
def test_containers_of_one_pod_count_as_many_as_they_have_different_devices(
    taken: list[tuple[int, int]],
) -> None:
    containers = [units(count, first=first) for first, count in taken]
    different = {text for container in containers for text in container.ids}
    assert foreign_shares(containers, layout(card(0, memory=64 * GIB))).get("GPU-0", 0) == len(different)


@pytest.mark.parametrize(
    ("foreign", "doubt"),
    [
        pytest.param(units(size=GIB), "", id="nothing to say"),
        pytest.param(units(), "", id="of unknown size"),
        pytest.param(units(size=MIB), "4 units of 1Mi each", id="another size"),
        pytest.param(units(on=""), "says nothing", id="on an unknown card"),
        pytest.param(
            units(on="7"), "says index 7, which none has", id="on a card that has another index now"
        ),
        pytest.param(replace(units(on="GPU-0", name=WHOLE), size=MIB), "", id="a whole card has no size"),
    ],
)
def test_what_counts_as_more_is_said(foreign: ForeignUnits, doubt: str) -> None:
    said = foreign_doubt(foreign, layout())
    assert (doubt in said) if doubt else (said == "")
