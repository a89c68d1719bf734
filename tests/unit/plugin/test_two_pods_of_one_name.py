"""Two pods of one name: a static pod without a mirror, and one that the API server has by that name."""

from array import array
from dataclasses import replace

import pytest
from tests.samples.plugin import (
    assigned,
    by_name,
    container,
    layout,
    name_of,
    node_assignments,
    pod,
    share_node,
    stored,
)

from gpushare_plugin.decide.held.allocations import every_allocation, orphans
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry
from gpushare_plugin.decide.held.foreign_cards import locate
from gpushare_plugin.decide.held.kubelet_restart import PodsListedSinceRestart, unshown_holders, with_unshown
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import PodAssignment, place
from gpushare_plugin.decide.held.pod_identity import identify
from gpushare_plugin.decide.held.pods import Pod
from gpushare_plugin.decide.offer.granted_units import stored_granted_units
from gpushare_plugin.decide.units.foreign_units import ForeignUnits

KNOWN = pod("a", container(units=4))
OWN_UNITS, STATIC_UNITS = [0, 1, 2, 3], [4, 5, 6, 7]
PODS = by_name(KNOWN)


def listed(units: list[int], uid: str = "", *, name: str = "a") -> PodAssignment:
    return replace(assigned(**{name: {"main": units}}).pods[name_of(name)], uid=uid)


BOTH = AssignedDevices(place([listed(OWN_UNITS, "uid-a"), listed(STATIC_UNITS, "uid-static")]))
CHECKPOINT = stored(layout(), a={"main": OWN_UNITS}, static={"main": STATIC_UNITS})
ENTRIES = [entry for containers in CHECKPOINT.values() for entry in containers.values()]


def held(devices: AssignedDevices, known: Pod = KNOWN) -> dict[str, dict[str, int]]:
    return {
        held.pod.uid: dict(held.cards) for held in every_allocation(node_assignments(devices), by_name(known))
    }


def test_who_is_left_has_the_uid_that_its_units_had() -> None:
    left = AssignedDevices(place([listed(STATIC_UNITS)]))
    found = identify(left, [], BOTH, PODS)
    assert [orphan.uid for orphan in orphans(found, PODS)] == ["uid-static"]
    again = identify(left, [], found, PODS)
    assert [pod.uid for pod in again.pods.values()] == ["uid-static"]


@pytest.mark.parametrize("entries", [ENTRIES, []], ids=["with a checkpoint", "without"])
def test_who_is_not_shown_yet_has_its_units_beside_a_static_pod_of_its_name(
    entries: list[CheckpointEntry],
) -> None:
    """A kubelet that was restarted shows static pods first."""
    shown = PodsListedSinceRestart(kubelet="1", complete=True, names=frozenset(BOTH.pods))
    seen = BOTH
    for at in (1.0, 2.0):
        answer = AssignedDevices(place([listed(STATIC_UNITS)]), kubelet="2")
        found = identify(answer, entries, seen, PODS)
        shown = shown.after(found, seen, PODS, now=at)
        seen = with_unshown(found, seen, shown, PODS, stored=CHECKPOINT if entries else {})
        assert {*seen.numbers()} == {*OWN_UNITS, *STATIC_UNITS}
        assert held(seen) == {"uid-a": {"GPU-0": 4}, "uid-static": {"GPU-0": 4}}
        assert not shown.complete
    answer = AssignedDevices(place([listed(STATIC_UNITS), listed(OWN_UNITS)]), kubelet="2")
    found = identify(answer, entries, seen, PODS)
    shown = shown.after(found, seen, PODS, now=3.0)
    assert shown.complete
    assert with_unshown(found, seen, shown, PODS, stored={}).unshown == frozenset()


def test_a_static_pod_has_its_units_beside_one_of_its_name_that_the_kubelet_has_forgotten() -> None:
    running = replace(KNOWN, running=True)
    known = PodAllocation(running, {"main": {"GPU-0": 4}}, {"GPU-0": 4})
    without = AssignedDevices(
        place([listed([], "uid-a"), listed(STATIC_UNITS, "uid-static")]), lost={name_of("a"): known}
    )
    assert held(without, running) == {"uid-a": {"GPU-0": 4}, "uid-static": {"GPU-0": 4}}


@pytest.mark.parametrize("is_first", [True, False], ids=["listed first", "listed last"])
def test_without_a_checkpoint_what_they_have_tells_them_apart(*, is_first: bool) -> None:
    both = [listed([*range(12)]), listed([16, 17, 18, 19])]
    answer = AssignedDevices(place(both if is_first else both[::-1]))
    found = identify(answer, [], AssignedDevices(), PODS)
    assert held(found)["uid-a"] == {"GPU-1": 4}


def test_pods_of_which_nothing_tells_the_uid_are_not_taken_for_one() -> None:
    """Of two nodes, too: a pod is on one."""
    found = place([listed([], name=name) for name in ("a", "a", "a", "b", "b")])
    uids = [assignment.uid for assignment in found.values() if assignment.uid]
    assert len({*uids}) == len(uids) == 3


def test_the_record_does_not_wait_for_one_that_is_listed_by_another_name() -> None:
    share = {"namespace": "default", "name": "a", "uid": "uid-static", "container": "main", "units": 4}
    card = {"index": 0, "uuid": "GPU-0", "model": "", "memory": "16Gi", "units": 16, "allocatedUnits": 4}
    status = share_node(status={"memoryUnit": "1Gi", "cards": [{**card, "pods": [share]}]}).status
    left = identify(AssignedDevices(place([listed(STATIC_UNITS)])), [], BOTH, PODS)
    assert unshown_holders(status, left, PodsListedSinceRestart(kubelet="2"), PODS) == frozenset()


def test_the_card_of_foreign_devices_stays_known_of_both() -> None:
    units = ForeignUnits("aliyun.com/gpu-mem", {"GPU-9-_-": array("I", [0, 1])})
    static = replace(listed([], "uid-static"), foreign={"main": (units,)})
    known = replace(static, foreign={"main": (replace(units, card="GPU-1"),)})
    before = AssignedDevices(place([listed(OWN_UNITS, "uid-a"), known]))
    now = AssignedDevices(place([listed(OWN_UNITS, "uid-a"), static]))
    found = locate(now, before, PODS, {units.name})
    assert {units.card for every in found.foreign() for units in every} == {"GPU-1"}


def test_people_are_told_the_name_that_the_pod_has() -> None:
    both = replace(BOTH, stored={"uid-static": CHECKPOINT["uid-static"]})
    assert {stored.holder for stored in stored_granted_units(both)} == {"default/a"}
