"""Nothing is decided again while the snapshot equals the one before."""

from collections.abc import Callable
from itertools import count

import pytest

from gpushare_plugin.decide.memo import Memo

BEFORE = (["one"], 1, {"a": 1})


def counting() -> Callable[[object], int]:
    """Returns a function that answers something else each time."""
    answers = count()
    return lambda _: next(answers)


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        pytest.param(BEFORE, 0, id="the same"),
        pytest.param((["one"], 1, {"a": 1}), 0, id="an equal one"),
        pytest.param((["one"], 1, {"a": 2}), 1, id="another value"),
        pytest.param((["one"], *BEFORE), 1, id="one more"),
        pytest.param((), 1, id="nothing"),
    ],
)
def test_it_is_decided_anew_where_something_differs(snapshot: tuple[object, ...], expected: int) -> None:
    decide, memo = counting(), Memo[int]()
    assert memo.value(BEFORE, decide) == 0
    assert memo.value(snapshot, decide) == expected


def test_the_first_time_it_is_decided_whatever_it_follows_from() -> None:
    assert Memo[int]().value(None, counting()) == 0


def test_only_the_last_result_is_kept() -> None:
    decide, memo = counting(), Memo[int]()
    assert [memo.value(snapshot, decide) for snapshot in (1, 2, 1)] == [0, 1, 2]


def test_a_result_that_equals_the_one_before_is_the_same_object() -> None:
    memo = Memo[list[int]]()
    first, second, other = (memo.value(snapshot, lambda number: [number // 2]) for snapshot in (2, 3, 4))
    assert second is first
    assert other == [2]


def test_what_fails_to_be_decided_leaves_what_is_known() -> None:
    decide, memo = counting(), Memo[int]()
    assert memo.value(1, decide) == 0
    with pytest.raises(ZeroDivisionError):
        memo.value(2, lambda _: 1 // 0)
    assert memo.value(1, decide) == 0


def test_a_key_with_an_equal_snapshot_is_not_decided_again() -> None:
    decided, memo = list[str](), Memo[str]()

    def decide(snapshot: str) -> str:
        decided.append(snapshot)
        return snapshot

    memo.values({"a": "first"}, decide)
    assert memo.values({"a": "first", "b": "second"}, decide) == ["first", "second"]
    memo.values({"a": "first", "b": "third"}, decide)
    assert decided == ["first", "second", "third"]


def test_what_is_not_kept_is_decided_again() -> None:
    decide, memo = counting(), Memo[int]()
    found = [memo.values({"a": 1}, decide, keep=lambda number: number > 0) for _ in range(3)]
    assert found == [[0], [1], [1]]
