"""Numbers of units as a set of bytes are a set."""

from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.audit.unit_map import UnitNumbers

NUMBERS = st.sets(st.integers(0, 300)) | st.builds(range, st.integers(0, 300), st.integers(0, 300)).map(set)


@given(st.lists(NUMBERS), NUMBERS)
def test_they_are_a_set(added: list[set[int]], asked: set[int]) -> None:
    numbers, expected = UnitNumbers(), set[int]()
    for difference in added:
        numbers.add(sorted(difference))
        expected |= difference
    assert len(numbers) == len(expected)
    assert numbers.has_any(sorted(asked)) == bool(expected & asked)
