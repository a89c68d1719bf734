"""Conditions keep the time of their last transition for as long as their status stays."""

from datetime import UTC, datetime

import pytest

from gpushare_core.api.conditions import (
    Condition,
    ConditionState,
    condition_false,
    condition_true,
    condition_unknown,
    dated_conditions,
)

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
EARLIER = "2026-11-20T08:00:00Z"


def condition(status: str) -> Condition:
    return Condition(type="Ready", status=status, reason="Old", message="", last_transition_time=EARLIER)


@pytest.mark.parametrize(
    ("state", "status"),
    [
        pytest.param(condition_true("Ready", "Fine"), "True", id="true"),
        pytest.param(condition_false("Ready", "Broken"), "False", id="false"),
        pytest.param(condition_unknown("Ready", "Away"), "Unknown", id="unknown"),
    ],
)
def test_a_new_condition_begins_now(state: ConditionState, status: str) -> None:
    (dated,) = dated_conditions([state], before=[], generation=3, now=NOW)
    assert (dated.status, dated.last_transition_time) == (status, "2026-11-21T12:00:00Z")
    assert (dated.reason, dated.observed_generation) == (state.reason, 3)


@pytest.mark.parametrize(
    ("before", "since"),
    [
        pytest.param("True", EARLIER, id="same status: the time stays"),
        pytest.param("False", "2026-11-21T12:00:00Z", id="other status: now"),
    ],
)
def test_the_transition_is_when_the_status_changed(before: str, since: str) -> None:
    (dated,) = dated_conditions(
        [condition_true("Ready", "New", "other words")],
        before=[condition(before)],
        generation=1,
        now=NOW,
    )
    assert (dated.last_transition_time, dated.reason, dated.message) == (since, "New", "other words")


def test_a_condition_that_is_not_decided_any_more_goes() -> None:
    assert dated_conditions([], before=[condition("True")], generation=1, now=NOW) == []
