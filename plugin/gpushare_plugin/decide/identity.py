"""Which pod it is that PodResources list: they know its name only, and names are used again."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from gpushare_plugin.decide.assigned_devices import AssignedDevices
from gpushare_plugin.decide.checkpoint import CheckpointEntry, by_pod
from gpushare_plugin.decide.foreign_units import ForeignUnits
from gpushare_plugin.decide.pod_assignment import PodAssignment
from gpushare_plugin.decide.pods import Pods

Units = tuple[str, str, int, int]
"""A container, the lowest of its units and how many they are: no two pods have that in common.

What foreign IDs begin with stands before that; it is empty for our own.
"""


def identify(
    listed: AssignedDevices, entries: Iterable[CheckpointEntry], before: AssignedDevices, pods: Pods
) -> AssignedDevices:
    """Returns what is ``listed`` with the pods' UIDs, and what the checkpoint says of these pods.

    A UID is the one under which the checkpoint has the same units; else the one that these units had
    ``before``; else that of the API's pod of this name; else the one that the name had before, where the
    checkpoint alone shows units of it. The checkpoint's other entries are of pods that have
    ended since it was written. (One that has ended, whose units were an ordinary init container's alone and
    whose name another pod has now, cannot be told from that.)
    """
    stored = by_pod(entries)
    uids = {
        key: entry.uid
        for each in stored.values()
        for entry in each.values()
        for key in _units(entry.container, entry.numbers, entry.foreign)
    }
    identified = {
        name: replace(assignment, uid=_uid(assignment, uids, before.pods.get(name), pods))
        for name, assignment in listed.pods.items()
    }
    active = {assignment.uid for assignment in identified.values()}
    return replace(
        listed, pods=identified, stored={uid: each for uid, each in stored.items() if uid in active}
    )


def _uid(
    assignment: PodAssignment, uids: Mapping[Units, str], before: PodAssignment | None, pods: Pods
) -> str:
    for container, numbers in assignment.containers.items():
        for key in _units(container, numbers, assignment.foreign.get(container, ())):
            if key in uids:
                return uids[key]
    if before is not None and before.uid and _share_units(assignment, before):
        return before.uid
    if (pod := pods.get(assignment.name)) is not None:
        return pod.kubelet_uid
    if before is not None and before.uid in uids.values() and not (before.units or assignment.units):
        return before.uid
    return ""


def _units(container: str, numbers: "array[int]", foreign: Iterable[ForeignUnits]) -> Iterator[Units]:
    if numbers:
        yield container, "", min(numbers), len(numbers)
    for each in foreign:
        yield container, *each.key


def _share_units(one: PodAssignment, other: PodAssignment) -> bool:
    own = (numbers and numbers == other.containers.get(name) for name, numbers in one.containers.items())
    foreign = (units == other.foreign.get(name) for name, units in one.foreign.items())
    return any(own) or any(foreign)
