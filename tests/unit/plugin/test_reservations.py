"""What the kubelet was given after the newest list: nobody else gets it before another one."""

import pytest

from gpushare_plugin.kubelet.reservations import ALLOCATE_DEBOUNCE, UnitReservations


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param([1], True, id="given"),
        pytest.param([4, 5], True, id="given in part"),
        pytest.param([3], False, id="in between"),
        pytest.param([9], False, id="beyond"),
        pytest.param([], False, id="nothing"),
    ],
)
def test_what_was_given_is_not_listed_yet(asked: list[int], *, expected: bool) -> None:
    reservations = UnitReservations(lambda: 0.0)
    for given in ([2, 1], [], [5, 6]):
        reservations.allocate(given)
    assert reservations.may_be_unlisted(asked) is expected


def test_what_is_lent_counts_since_it_was_lent() -> None:
    """An ordinary init container lends its units: a list of in between shows some of them only."""
    now = 0.0
    reservations = UnitReservations(lambda: now)
    reservations.allocate([1, 2, 3, 4])
    now = 1.0
    reservations.allocate([2, 3])
    reservations.put_listed(begun=ALLOCATE_DEBOUNCE)
    assert [number for number in range(6) if reservations.may_be_unlisted([number])] == [2, 3]


def test_what_was_given_lately_may_not_be_written_down() -> None:
    now = 0.0
    reservations = UnitReservations(lambda: now)
    reservations.allocate([1, 2])
    now = ALLOCATE_DEBOUNCE / 2
    reservations.allocate([2, 3])
    assert reservations.given_lately([1, 2, 9]) == {1, 2}
    now = ALLOCATE_DEBOUNCE
    assert reservations.given_lately([1, 2, 9]) == {2}


def test_who_is_given_units_while_another_call_for_them_waits() -> None:
    reservations = UnitReservations(lambda: 0.0)
    reservations.allocate([1, 2])
    begun = reservations.granted
    assert not reservations.is_given_since(begun, [1, 2])
    reservations.allocate([2])
    assert [number for number in range(4) if reservations.is_given_since(begun, [number])] == [2]
