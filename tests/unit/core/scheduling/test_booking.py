"""What pods have of one card, as small as it is kept: the same as a dictionary of it would say."""

from hypothesis import given
from hypothesis import strategies as st

from gpushare_core.scheduling.ledger.booking import (
    Bookings,
    bookings_of,
    units_booked,
    units_by_pod,
    with_units,
    without_pod,
)

UIDS = st.sampled_from(["a", "b", "c", "d"])
BOOKED = st.dictionaries(UIDS, st.integers(0, 9))


@given(units=BOOKED)
def test_nothing_is_lost_and_the_order_stays(units: dict[str, int]) -> None:
    assert [*units_by_pod(bookings_of(units)).items()] == [*units.items()]


@given(units=BOOKED, uid=UIDS)
def test_of_one_pod(units: dict[str, int], uid: str) -> None:
    assert units_booked(bookings_of(units), uid) == units.get(uid, 0)


@given(steps=st.lists(st.tuples(UIDS, st.none() | st.integers(0, 9))))
def test_as_a_dictionary_would_be(steps: list[tuple[str, int | None]]) -> None:
    bookings: Bookings = None
    plain: dict[str, int] = {}
    for uid, units in steps:
        if units is None:
            bookings = without_pod(bookings, uid)
            plain.pop(uid, None)
        else:
            bookings = with_units(bookings, uid, units)
            plain[uid] = plain.get(uid, 0) + units
        assert units_by_pod(bookings) == plain
    assert (bookings is None) == (not plain)
