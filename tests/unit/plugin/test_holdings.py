"""Whose units are whose by list and checkpoint together."""

from array import array

from gpushare_plugin.decide.assigned_devices import AssignedDevices
from gpushare_plugin.decide.checkpoint import CheckpointEntry
from gpushare_plugin.decide.identity import identify
from gpushare_plugin.decide.pod_assignment import PodAssignment
from gpushare_plugin.decide.pods import PodName

NAME = PodName("default", "a")


def entry(container: str, *numbers: int) -> CheckpointEntry:
    return CheckpointEntry(uid="uid-a", container=container, numbers=array("I", numbers))


def test_what_list_and_checkpoint_both_say_of_a_container_is_looked_at_once() -> None:
    listed = AssignedDevices({NAME: PodAssignment(NAME, {"main": array("I", [1, 2])})})
    entries = [entry("main", 1, 2), entry("init", 7)]
    identified = identify(listed, entries, AssignedDevices(), {})
    assert identified.pods[NAME].uid == "uid-a"
    assert [each.tolist() for each in identified.holdings()] == [[1, 2], [7]]


def test_what_they_say_differently_counts_by_both() -> None:
    pods = {NAME: PodAssignment(NAME, {"main": array("I", [1, 2])}, "uid-a")}
    assigned = AssignedDevices(pods, {"uid-a": {"main": entry("main", 2, 3)}})
    assert {*assigned.numbers()} == {1, 2, 3}
