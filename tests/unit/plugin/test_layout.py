"""An ID means the same card for as long as a pod holds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples.plugin import GIB, card, layout

from gpushare_core.api.share_node import CardStatus, NodeStatus
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.units.layout import GONE, keep_places, lay_out, recorded_layout
from gpushare_plugin.devices.card import PhysicalCard

UNIT = MemoryUnit.parse("1Gi")
MEMORIES = st.lists(st.integers(0, 40), min_size=1, max_size=6)


def spans(*cards: PhysicalCard, reserved: int = 0) -> list[tuple[int, int]]:
    placed = lay_out(cards, UNIT, reserved=reserved).cards
    return [(card.first, card.units) for card in placed]


@pytest.mark.parametrize(
    ("cards", "reserved", "expected"),
    [
        pytest.param([card(0), card(1)], 0, [(0, 16), (16, 16)], id="one after the other"),
        pytest.param([card(0), card(1)], 1, [(0, 15), (16, 15)], id="reserved memory moves no card"),
        pytest.param([card(0, memory=8 * GIB), card(1)], 0, [(0, 8), (8, 16)], id="sizes differ"),
        pytest.param([card(0, memory=GIB // 2), card(1)], 0, [(0, 0), (0, 16)], id="smaller than a unit"),
        pytest.param([], 0, [], id="no cards"),
    ],
)
def test_units_lie_one_card_after_the_other(
    cards: list[PhysicalCard], reserved: int, expected: list[tuple[int, int]]
) -> None:
    assert spans(*cards, reserved=reserved) == expected


@given(MEMORIES, st.integers(0, 3))
def test_every_unit_lies_on_its_card_and_only_there(sizes: list[int], reserved: int) -> None:
    cards = [card(index, memory=size * GIB) for index, size in enumerate(sizes)]
    made = lay_out(cards, UNIT, reserved=reserved * GIB)
    for placed in made.cards:
        assert all(made.card_of(number) is placed for number in placed.numbers)
    assert made.card_of(made.end) is None
    assert made.card_of(-1) is None
    assert made.units == sum(max(0, size - reserved) for size in sizes)


def test_shares_count_units_by_card() -> None:
    made = layout()
    assert made.shares([]) == {}
    assert made.shares([3, 0, 15]) == {"GPU-0": 3}
    assert made.shares([15, 16, 17]) == {"GPU-0": 1, "GPU-1": 2}
    assert made.shares([31, 32, 9999]) == {"GPU-1": 1}


def test_without_held_units_the_cards_are_as_they_are_found() -> None:
    found = [card(0, memory=8 * GIB), card(1)]
    assert keep_places(found, [card(1), card(2)], held=False) == tuple(found)


def test_while_units_are_held_known_cards_keep_place_and_size_and_new_ones_follow() -> None:
    known = [card(1), card(0)]
    found = [card(0, memory=99 * GIB), card(5), card(1)]
    kept = keep_places(found, known, held=True)
    assert [kept_card.uuid for kept_card in kept] == ["GPU-1", "GPU-0", "GPU-5"]
    assert [kept_card.memory for kept_card in kept] == [16 * GIB] * 3
    assert [kept_card.index for kept_card in kept] == [1, 0, 2]


def test_a_card_that_vanished_while_units_are_held_stays_in_its_place_unhealthy() -> None:
    gone, kept = keep_places([card(1)], [card(0), card(1)], held=True)
    assert (gone.uuid, gone.healthy, gone.reason) == ("GPU-0", False, GONE)
    assert kept == card(1)


def test_what_was_recorded_leads_to_the_same_layout_after_a_restart() -> None:
    before = layout(card(0, memory=8 * GIB), card(1))
    written = [
        CardStatus(
            index=placed.card.index,
            uuid=placed.uuid,
            memory=f"{placed.card.memory // GIB}Gi",
            units=placed.units,
        )
        for placed in before.cards
    ]
    recorded = recorded_layout(NodeStatus(memory_unit="1Gi", cards=written))
    assert recorded
    cards = keep_places([card(1), card(0)], [placed.card for placed in recorded.cards], held=True)
    after = lay_out(cards, UNIT, reserved=0, places=recorded.places)
    assert [(placed.uuid, placed.first) for placed in after.cards] == [("GPU-0", 0), ("GPU-1", 8)]


def test_a_layout_with_gaps_is_recorded_with_its_gaps() -> None:
    before = lay_out([card(0), card(1)], UNIT, reserved=GIB, places={"GPU-1": 40})
    assert [(placed.uuid, placed.first) for placed in before.cards] == [("GPU-0", 0), ("GPU-1", 40)]
    assert (before.card_of(39), before.card_of(55), before.card_of(56)) == (None, before.cards[1], None)
    written = [
        CardStatus(
            index=placed.card.index, uuid=placed.uuid, memory="16Gi", units=15, first_unit=placed.first
        )
        for placed in before.cards
    ]
    assert before.means_the_same(recorded_layout(NodeStatus(memory_unit="1Gi", cards=written)))


def test_a_card_without_a_place_takes_the_first_gap_that_is_wide_enough() -> None:
    cards = [card(0), card(1, memory=8 * GIB), card(2), card(3, memory=GIB // 2)]
    made = lay_out(cards, UNIT, reserved=0, places={"GPU-2": 10})
    assert made.places == {"GPU-2": 10, "GPU-0": 26, "GPU-1": 0, "GPU-3": 8}
    assert made.card_of(7) is made.cards[0]
    assert made.card_of(10).uuid == "GPU-2"  # type: ignore[union-attr]
