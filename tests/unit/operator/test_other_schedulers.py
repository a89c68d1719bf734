"""What SchedulerConfigured says of pods that another scheduler places."""

import pytest
from tests.samples.operator import calls, snapshot

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_operator.status.other_schedulers import with_other_schedulers

CONFIGURED = condition_true("SchedulerConfigured", "Configured", "kube-scheduler asks the extender on cp")


def result(said: str, state: ConditionState = CONFIGURED) -> str:
    told = with_other_schedulers(state, snapshot(calls(other_schedulers=said)), "Extender")
    assert (told.status, told.reason) == (state.status, state.reason)
    return told.message.removeprefix(state.message)


def test_they_are_counted_and_some_are_named() -> None:
    assert result("5 a/x a/y b/z").startswith(
        "; 5 pods that ask for cards have another schedulerName (a/x, a/y, b/z and 2 more):"
        " that scheduler does not look at single cards"
    )
    assert result("1 a/x").startswith("; 1 pod that asks for cards has another schedulerName (a/x):")


@pytest.mark.parametrize("said", ["", "nonsense", "0"])
def test_nothing_is_said_of_none(said: str) -> None:
    assert result(said) == ""


def test_what_is_not_connected_yet_is_said_first() -> None:
    assert (
        result("1 a/x", condition_false("SchedulerConfigured", "Installing", "it is being connected")) == ""
    )


def test_before_an_extender_has_said_anything_nothing_is_known() -> None:
    assert with_other_schedulers(CONFIGURED, snapshot(), "Extender") == CONFIGURED


@pytest.mark.parametrize("engine", ["Plugin", ""])
def test_what_an_extender_said_that_is_gone_is_not_repeated(engine: str) -> None:
    """Nobody writes its Lease any more, so the pods would be counted for ever."""
    seen = snapshot(calls(other_schedulers="5 a/x"))
    assert with_other_schedulers(CONFIGURED, seen, engine) == CONFIGURED
