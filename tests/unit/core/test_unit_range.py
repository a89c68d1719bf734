"""Units side by side are known as a range, and no others are."""

from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.placement.unit_range import unit_range


@given(st.sets(st.integers(0, 40)) | st.builds(range, st.integers(0, 40), st.integers(0, 40)).map(set))
def test_a_range_is_told_exactly_where_units_have_no_gap(members: set[int]) -> None:
    numbers = sorted(members)
    found = unit_range(numbers)
    is_whole = not numbers or numbers == list(range(numbers[0], numbers[-1] + 1))
    assert (found is not None) is is_whole
    assert found is None or list(found) == numbers
