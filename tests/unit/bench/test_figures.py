"""Targets, and what counts as measured."""

import math

import pytest
from bench.measuring.figures import (
    Figure,
    NotMeasuredError,
    Outcome,
    Target,
    at_least,
    at_most,
    exit_code,
    ratio,
)

MEASURED = Outcome("a", "A", "stage", (Figure("x", 1.0),))
MISSED = Outcome("b", "B", "stage", (Figure("x", 2.0, target=at_most(1)),))
UNMEASURED = Outcome("c", "C", "stage", problem="the cluster is gone")


@pytest.mark.parametrize(
    ("target", "measured", "reached"),
    [
        pytest.param(at_most(1.3), 1.3, True, id="equal is reached"),
        pytest.param(at_most(1.3), 1.3001, False, id="above"),
        pytest.param(at_least(0.8), 0.8, True, id="equal is reached, too"),
        pytest.param(at_least(0.8), 0.7999, False, id="below"),
        pytest.param(at_most(0), 0.0, True, id="none at all"),
        pytest.param(None, 5.0, None, id="without a target nothing is judged"),
    ],
)
def test_whether_a_target_is_reached(*, target: Target | None, measured: float, reached: bool | None) -> None:
    assert Figure("x", measured, target=target).reached is reached


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_figure(value: float) -> None:
    with pytest.raises(NotMeasuredError, match="x is"):
        Figure("x", value, target=at_least(0))


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        pytest.param([MEASURED, MISSED], 0, id="a missed target is a result"),
        pytest.param([MEASURED, UNMEASURED], 1, id="a row without figures is none"),
        pytest.param([], 1, id="nothing was measured"),
    ],
)
def test_the_exit_code_says_whether_all_was_measured(outcomes: list[Outcome], code: int) -> None:
    assert exit_code(outcomes) == code


def test_a_ratio_needs_something_to_compare_with() -> None:
    assert ratio(90, 100, "shared over plain") == 0.9
    with pytest.raises(NotMeasuredError, match="shared over plain: there is nothing to compare with"):
        ratio(90, 0, "shared over plain")
