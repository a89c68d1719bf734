"""Which pods count as placed by a scheduler that does not ask the extender."""

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.text.json_object import Json
from gpushare_extender.decide.waiting.other_schedulers import asking_for, candidates, report

OURS = dict(RESOURCES)


def pod(name: str = "a", scheduler: str = "mine", asks: str = "gpushare.io/memory") -> Json:
    container = {"name": "main", "resources": {"limits": {asks: "2"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }


def test_one_that_asks_for_units_counts() -> None:
    assert asking_for([pod("a"), pod("b", asks="cpu")], OURS) == ["default/a"]


def test_pods_of_schedulers_that_ask_are_not_read_and_never_those_of_kube_scheduler() -> None:
    assert candidates({"profile"}) == (
        "spec.schedulerName!=default-scheduler,spec.schedulerName!=profile,"
        "status.phase!=Succeeded,status.phase!=Failed"
    )


def test_of_many_some_are_named() -> None:
    assert report([f"default/{letter}" for letter in "dcba"]) == "4 default/a default/b default/c"
    assert report([]) == ""
