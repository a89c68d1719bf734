"""Which pods count as placed by a scheduler that does not ask the extender."""

import pytest

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.json_object import Json
from gpushare_extender.decide.other_schedulers import placed_by_others, report

OURS = dict(RESOURCES)


def pod(name: str = "a", scheduler: str = "mine", asks: str = "gpushare.io/memory") -> Json:
    container = {"name": "main", "resources": {"limits": {asks: "2"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def test_one_that_asks_for_units_and_names_another_scheduler_counts() -> None:
    assert placed_by_others([pod()], asking={"default-scheduler"}, resources=OURS) == ["default/a"]


@pytest.mark.parametrize(
    "other",
    [pytest.param(pod(scheduler="profile"), id="has asked"), pytest.param(pod(asks="cpu"), id="no units")],
)
def test_others_do_not(other: Json) -> None:
    assert placed_by_others([other], asking={"profile"}, resources=OURS) == []


def test_of_many_some_are_named() -> None:
    assert report([f"default/{each}" for each in "dcba"]) == "4 default/a default/b default/c"
    assert report([]) == ""
