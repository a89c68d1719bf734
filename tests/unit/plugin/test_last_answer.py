"""Nothing is worked out again while all is the same that it follows from."""

from collections.abc import Callable

import pytest

from gpushare_plugin.decide.memo import LastAnswer

ONE, TWIN = ["one"], ["one"]
"""Equal, and not the same."""


def counting() -> tuple[list[int], Callable[[], int]]:
    """What was answered so far, and a function that answers something else each time."""
    answers: list[int] = []

    def decide() -> int:
        answers.append(len(answers))
        return answers[-1]

    return answers, decide


@pytest.mark.parametrize(
    ("same", "equal", "expected"),
    [
        pytest.param((ONE,), (1, {"a": 1}), 0, id="the same"),
        pytest.param((TWIN,), (1, {"a": 1}), 1, id="an equal object in place of the very same"),
        pytest.param((ONE,), (1, {"a": 2}), 1, id="another value"),
        pytest.param((ONE, ONE), (1, {"a": 1}), 1, id="one more"),
        pytest.param((), (), 1, id="nothing"),
    ],
)
def test_it_is_decided_anew_where_something_differs(
    same: tuple[object, ...], equal: tuple[object, ...], expected: int
) -> None:
    _, decide = counting()
    last = LastAnswer[int]()
    assert last.to((ONE,), (1, {"a": 1}), decide=decide) == 0
    assert last.to(same, equal, decide=decide) == expected


def test_the_first_time_it_is_decided_whatever_it_follows_from() -> None:
    answers, decide = counting()
    assert LastAnswer[int]().to((), (), decide=decide) == 0
    assert answers == [0]


def test_only_the_last_answer_is_kept() -> None:
    _, decide = counting()
    last = LastAnswer[int]()
    assert [last.to((), (each,), decide=decide) for each in (1, 2, 1)] == [0, 1, 2]
