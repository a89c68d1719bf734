"""Three letters name every unit of a node, and nothing else."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpushare_plugin.decide.units.unit_ids import (
    ALPHABET,
    CAPACITY,
    SHORT,
    UnitSet,
    UnknownUnitError,
    decode_id,
    encode_id,
    known_numbers,
)

NUMBERS = st.integers(0, CAPACITY - 1)


@given(NUMBERS)
def test_an_id_leads_back_to_its_number(number: int) -> None:
    assert decode_id(encode_id(number)) == number
    assert len(encode_id(number)) == (2 if number in SHORT else 3)


def test_no_id_looks_like_one_of_volcanos_plugin() -> None:
    """``<card index>-<number>``; every single ID is looked at."""
    every = {encode_id(number) for number in range(CAPACITY)}
    assert len(every) == CAPACITY
    assert not [unit_id for unit_id in every if re.fullmatch("[0-9]+-[0-9]+", unit_id)]
    assert len(SHORT) == 100


@given(NUMBERS, NUMBERS)
def test_ids_are_in_the_order_of_their_numbers_by_the_alphabet(one: int, other: int) -> None:
    assume(not {one, other} & SHORT)
    places = [[ALPHABET.index(letter) for letter in encode_id(number)] for number in (one, other)]
    assert (places[0] < places[1]) == (one < other)


@given(st.text(max_size=5))
def test_other_texts_are_refused_by_name(text: str) -> None:
    if len(text) == 3 and set(text) <= set(ALPHABET) and not re.fullmatch("[0-9]-[0-9]", text):
        return
    if len(text) == 2 and set(text) <= set("0123456789"):
        return
    with pytest.raises(UnknownUnitError, match="names no unit"):
        decode_id(text)


def test_known_numbers_leave_foreign_ids_out() -> None:
    assert list(known_numbers(["AAB", "GPU-1-_-7", "", "AAé", "0-5", "__-"])) == [1, decode_id("__-")]


@given(st.sets(st.integers(0, 300)), st.sets(st.integers(0, 300)), st.integers(0, 300), st.integers(0, 300))
def test_a_unit_set_is_a_set(members: set[int], discarded: set[int], begin: int, end: int) -> None:
    units = UnitSet(members)
    units.discard(discarded)
    inside = sorted(number for number in members - discarded if begin <= number < end)
    assert units.count(range(begin, end)) == len(inside)
    assert units.lowest(len(inside) + 1, range(begin, end)) == inside
    assert units.lowest(2, range(begin, end)) == inside[:2]


HOLDINGS = st.lists(
    st.sets(st.integers(0, 300)).map(sorted)
    | st.builds(range, st.integers(0, 300), st.integers(0, 300)).map(list)
)


@given(st.sets(st.integers(0, 300)), HOLDINGS, st.sets(st.integers(0, 300)))
def test_units_of_whole_containers_are_removed_as_one_by_one(
    members: set[int], holdings: list[list[int]], kept: set[int]
) -> None:
    units, others = UnitSet(members), UnitSet.of(holdings)
    units.discard_all(holdings, but=kept)
    taken = {number for holding in holdings for number in holding}
    assert units.lowest(302, range(302)) == sorted(members - (taken - kept))
    assert others.lowest(302, range(302)) == sorted(taken)
