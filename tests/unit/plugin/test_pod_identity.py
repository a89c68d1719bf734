"""PodResources know names; UIDs come from the checkpoint, from before, or from the API's pods."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from tests.samples.plugin import assigned, by_name, container, layout, name_of, pod, stored

from gpushare_plugin.decide.held.allocations import orphans
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry
from gpushare_plugin.decide.held.pod_identity import identify, with_stored
from gpushare_plugin.decide.held.pods import Pod, Pods

LISTED = assigned(a={"main": [0, 1]})
POD = pod("a", container(units=2))
SUCCESSOR = replace(POD, uid="other")


def entries(**pods: dict[str, list[int]]) -> list[CheckpointEntry]:
    return [entry for containers in stored(layout(), **pods).values() for entry in containers.values()]


def known_as(uid: str) -> AssignedDevices:
    return AssignedDevices({name: replace(assignment, uid=uid) for name, assignment in LISTED.pods.items()})


@pytest.mark.parametrize(
    ("checkpoint", "before", "pods", "expected"),
    [
        pytest.param(
            entries(a={"main": [0, 1]}), known_as("x"), by_name(SUCCESSOR), "uid-a", id="checkpoint"
        ),
        pytest.param(entries(b={"main": [2, 3]}), known_as("x"), by_name(POD), "x", id="as before"),
        pytest.param([], known_as("x"), by_name(POD), "x", id="as before, no checkpoint"),
        pytest.param([], AssignedDevices(), by_name(POD), "uid-a", id="the API's pod"),
        pytest.param([], AssignedDevices(), {}, "", id="nobody knows"),
        pytest.param(
            [],
            AssignedDevices(
                {name_of("a"): replace(assigned(a={"main": [8, 9]}).pods[name_of("a")], uid="x")}
            ),
            by_name(POD),
            "uid-a",
            id="other units than before",
        ),
    ],
)
def test_a_listed_pod_gets_its_uid(
    checkpoint: Iterable[CheckpointEntry], before: AssignedDevices, pods: Pods, expected: str
) -> None:
    found = identify(LISTED, checkpoint, before, pods)
    assert found.pods[name_of("a")].uid == expected
    assert list(found.stored) == (["uid-a"] if expected == "uid-a" and checkpoint else [])


def test_entries_of_pods_that_have_ended_are_left_out() -> None:
    found = identify(LISTED, entries(a={"main": [0, 1]}, gone={"main": [4]}), AssignedDevices(), {})
    assert list(found.stored) == ["uid-a"]


def test_a_pod_without_units_in_podresources_is_found_in_the_checkpoint_by_its_uid() -> None:
    found = identify(assigned(a={"main": []}), entries(a={"first": [0, 1]}), AssignedDevices(), by_name(POD))
    assert found.has_units(POD)
    assert not found.has_units(SUCCESSOR)
    assert [pod.name for pod in found.pods_with_units()] == [name_of("a")]


def test_a_deleted_pod_whose_init_container_alone_has_units_is_still_the_one_that_it_was() -> None:
    listed, checkpoint = assigned(a={"main": []}), entries(a={"first": [0, 1]})
    before = identify(listed, checkpoint, AssignedDevices(), by_name(POD))
    after = identify(listed, checkpoint, before, {})
    assert [orphan.uid for orphan in orphans(after, {})] == ["uid-a"]
    assert [orphan.uid for orphan in orphans(identify(listed, checkpoint, after, {}), {})] == ["uid-a"]
    assert orphans(identify(listed, [], before, {}), {}) == []
    assert orphans(identify(listed, checkpoint, before, by_name(SUCCESSOR)), by_name(SUCCESSOR)) == []


def test_orphans_are_pods_with_units_that_the_api_does_not_have() -> None:
    found = identify(LISTED, [], known_as("x"), {})
    assert [orphan.uid for orphan in orphans(found, {})] == ["x"]
    assert [orphan.uid for orphan in orphans(found, by_name(POD))] == ["x"]
    assert orphans(known_as("uid-a"), by_name(POD)) == []
    assert orphans(LISTED, by_name(POD)) == []


BEING_ADMITTED = assigned(a={"main": []}, b={"main": [8, 9]})
"""What was listed last before PodResources fell silent."""


def test_what_is_stored_in_silence_counts_of_the_pods_that_were_listed() -> None:
    checkpoint = stored(layout(), a={"main": [0, 1]}, gone={"main": [4]})
    found = with_stored(BEING_ADMITTED, checkpoint, by_name(POD))
    assert [orphan.uid for orphan in orphans(found, {})] == ["uid-a", ""], "the API server may forget it now"
    assert found.stored == stored(layout(), a={"main": [0, 1]})


def test_what_a_checkpoint_says_no_more_stays_in_silence() -> None:
    known = with_stored(BEING_ADMITTED, stored(layout(), a={"main": [0, 1]}), by_name(POD))
    assert with_stored(known, {}, by_name(POD)) == known


def test_a_pod_that_takes_a_listed_ones_name_in_silence_is_not_taken_for_that() -> None:
    known = with_stored(BEING_ADMITTED, stored(layout(), a={"main": [0, 1]}), by_name(POD))
    assert with_stored(known, stored(layout(), other={"main": [4]}), by_name(SUCCESSOR)) == known


def test_what_is_as_it_was_is_the_same_object_and_has_its_numbers_once() -> None:
    checkpoint = entries(a={"main": [0, 1]})
    first = identify(LISTED, checkpoint, AssignedDevices(), by_name(POD))
    again = identify(assigned(a={"main": [0, 1]}), checkpoint, first, by_name(POD))
    assert again.pods[name_of("a")] is first.pods[name_of("a")]
    assert first.pods[name_of("a")].containers["main"] is checkpoint[0].numbers


def test_other_units_under_the_same_name_are_told() -> None:
    first = identify(LISTED, (), AssignedDevices(), by_name(POD))
    again = identify(assigned(a={"main": [0, 2]}), (), first, by_name(POD))
    assert [*again.pods[name_of("a")].containers["main"]] == [0, 2]


class TestAPodOfWhichWeHaveNotHeard:
    """It took the name of the one that the API server told of; the checkpoint alone tells of it."""

    admitted = identify(LISTED, entries(a={"main": [0, 1]}), AssignedDevices(), by_name(SUCCESSOR))
    without_units = assigned(a={"main": []})

    def uid_after(self, listed: AssignedDevices, *, heard_of: Pod = SUCCESSOR) -> str:
        return identify(listed, [], self.admitted, by_name(heard_of)).pods[name_of("a")].uid

    def test_a_kubelet_that_has_lost_its_units_lists_it_still(self) -> None:
        assert self.uid_after(replace(self.without_units, kubelet="another process")) == "uid-a"

    def test_the_same_kubelet_that_lists_none_lists_the_other_one(self) -> None:
        assert self.uid_after(self.without_units) == SUCCESSOR.uid

    def test_once_we_hear_of_a_third_one_it_is_that(self) -> None:
        restarted = replace(self.without_units, kubelet="another process")
        assert self.uid_after(restarted, heard_of=replace(POD, uid="third")) == "third"

    def test_one_that_we_had_heard_of_is_the_older_one(self) -> None:
        heard_of = identify(LISTED, entries(a={"main": [0, 1]}), AssignedDevices(), by_name(POD))
        followed = identify(LISTED, entries(a={"main": [0, 1]}), heard_of, by_name(SUCCESSOR))
        restarted = replace(self.without_units, kubelet="another process")
        found = identify(restarted, [], followed, by_name(SUCCESSOR))
        assert found.pods[name_of("a")].uid == SUCCESSOR.uid
