"""What one unit is: written down and read again, and how much of a card it is."""

import pytest

from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import (
    WHOLE_CARD,
    CardPart,
    MemoryUnit,
    Unit,
    parse_node_unit,
    parse_unit,
)

MIB, GIB = 2**20, 2**30
QUARTER = CardPart(ResourceClass.SLICE, 4)


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        pytest.param("256Mi", MemoryUnit("256Mi", 256 * MIB), id="memory"),
        pytest.param("1/4 card", QUARTER, id="a slice"),
        pytest.param("1/64 card", CardPart(ResourceClass.SLICE, 64), id="the smallest slice"),
        pytest.param("1 card", WHOLE_CARD, id="a card"),
    ],
)
def test_what_is_written_is_read_again(text: str, unit: Unit) -> None:
    assert unit.text == text
    assert parse_unit(text) == unit


@pytest.mark.parametrize("text", ["", "0Gi", "2 card", "1/0 card", "1/100 card", "card", "1/4"])
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="memory"):
        parse_unit(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("1Gi, 1 card, 1 card", id="whole cards in place of slices"),
        pytest.param("1Gi, 1/2 card", id="no whole cards"),
        pytest.param("1/2 card, 1Gi, 1 card", id="in another order"),
    ],
)
def test_units_of_no_mode_are_none_of_a_node(text: str) -> None:
    with pytest.raises(ValueError, match="not the units of a node"):
        parse_node_unit(text)


def test_units_written_differently_mean_the_same() -> None:
    assert MemoryUnit.parse("1Gi").meaning == MemoryUnit.parse("1024Mi").meaning
    assert QUARTER.meaning != WHOLE_CARD.meaning


@pytest.mark.parametrize(
    ("unit", "units", "of_two"),
    [
        pytest.param(MemoryUnit.parse("1Gi"), 15, 2 * GIB, id="memory"),
        pytest.param(QUARTER, 4, 8 * GIB, id="slices: as many of every card"),
        pytest.param(CardPart(ResourceClass.SLICE, 3), 3, 10922 * MIB, id="in whole MiB"),
        pytest.param(WHOLE_CARD, 1, 32 * GIB, id="a card"),
    ],
)
def test_a_card_of_16_gib_has(unit: Unit, units: int, of_two: int) -> None:
    assert unit.units_in(16 * GIB, reserved=GIB) == units
    assert unit.memory_of(2, 16 * GIB) == of_two


@pytest.mark.parametrize("unit", [MemoryUnit.parse("1Gi"), QUARTER, WHOLE_CARD])
def test_a_card_that_is_reserved_as_a_whole_has_none(unit: Unit) -> None:
    assert unit.units_in(GIB, reserved=GIB) == 0
