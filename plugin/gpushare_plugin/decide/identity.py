"""Which pod it is that PodResources list: they know its name only, and names are used again."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpushare_plugin.decide.assigned_devices import AssignedDevices
from gpushare_plugin.decide.checkpoint import CheckpointEntry, by_pod
from gpushare_plugin.decide.foreign_units import ForeignUnits
from gpushare_plugin.decide.pod_assignment import PodAssignment, place
from gpushare_plugin.decide.pods import Pod, PodName, Pods

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

    Of two pods of one name it is the one that the API server has.
    """
    stored = by_pod(entries)
    uids = {
        key: entry.uid
        for each in stored.values()
        for entry in each.values()
        for key in _units(entry.container, entry.numbers, entry.foreign)
    }
    identified = dict(_identified(listed, uids, before, pods))
    active = {assignment.uid for assignment in identified.values()}
    return replace(
        listed, pods=identified, stored={uid: each for uid, each in stored.items() if uid in active}
    )


def _identified(
    listed: AssignedDevices, uids: Mapping[Units, str], before: AssignedDevices, pods: Pods
) -> Iterator[tuple[PodName, PodAssignment]]:
    for name, every in _by_name(listed).items():
        if len(every) > 1:
            yield from _apart(every, uids, _by_name(before).get(name, ()), pods.get(name)).items()
        else:
            yield name, replace(every[0], uid=_uid(every[0], uids, before.pods.get(name), pods))


def _by_name(assigned: AssignedDevices) -> dict[PodName, list[PodAssignment]]:
    found: dict[PodName, list[PodAssignment]] = {}
    for each in assigned.pods.values():
        found.setdefault(each.name, []).append(each)
    return found


def _apart(
    every: Sequence[PodAssignment],
    uids: Mapping[Units, str],
    before: Sequence[PodAssignment],
    pod: Pod | None,
) -> dict[PodName, PodAssignment]:
    """Returns pods of one name by their UIDs, first the one that the API server has: ``pod``."""
    told = [replace(each, uid=_told_uid(each, uids, before)) for each in every]
    own = pod.kubelet_uid if pod else ""
    if own not in {each.uid for each in told}:
        at = next((at for at, each in enumerate(told) if not each.uid), None)
        told = [replace(each, uid=own) if number == at else each for number, each in enumerate(told)]
    return place(sorted(told, key=lambda each: each.uid != own))


def _uid(
    assignment: PodAssignment, uids: Mapping[Units, str], before: PodAssignment | None, pods: Pods
) -> str:
    if told := _told_uid(assignment, uids, [before] if before else ()):
        return told
    if (pod := pods.get(assignment.name)) is not None:
        return pod.kubelet_uid
    if before is not None and before.uid in uids.values() and not (before.units or assignment.units):
        return before.uid
    return ""


def _told_uid(assignment: PodAssignment, uids: Mapping[Units, str], before: Iterable[PodAssignment]) -> str:
    """Returns the UID that the units have in the checkpoint, or had before; empty where neither says it."""
    for container, numbers in assignment.containers.items():
        for key in _units(container, numbers, assignment.foreign.get(container, ())):
            if key in uids:
                return uids[key]
    return next((each.uid for each in before if each.uid and _share_units(assignment, each)), "")


def _units(container: str, numbers: "array[int]", foreign: Iterable[ForeignUnits]) -> Iterator[Units]:
    if numbers:
        yield container, "", min(numbers), len(numbers)
    for each in foreign:
        yield container, *each.key


def _share_units(one: PodAssignment, other: PodAssignment) -> bool:
    own = (numbers and numbers == other.containers.get(name) for name, numbers in one.containers.items())
    foreign = (units == other.foreign.get(name) for name, units in one.foreign.items())
    return any(own) or any(foreign)
