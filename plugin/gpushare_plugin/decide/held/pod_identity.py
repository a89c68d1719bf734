"""Which pod it is that PodResources list: they give its name only, and names are used again."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredContainers, by_pod
from gpushare_plugin.decide.held.pod_assignment import PodAssignment, place
from gpushare_plugin.decide.held.pods import Pod, PodName, Pods
from gpushare_plugin.decide.units.foreign_units import ForeignUnits

Units = tuple[str, str, int, int]
"""A container, what its foreign IDs begin with (empty for our own), its lowest unit, and how many it has: no
two pods have all of that in common."""


def identify(
    listed: AssignedDevices,
    entries: Iterable[CheckpointEntry],
    before: AssignedDevices,
    pods: Pods,
    *,
    remembered: Mapping[PodName, str] = MappingProxyType({}),
) -> AssignedDevices:
    """Returns what is ``listed`` with the pods' UIDs, and what the checkpoint says of these pods.

    UID of a listed pod, the first that applies:
    1. the UID of the pod in the checkpoint with the same units;
    2. the UID that these units had ``before``;
    3. of the pods that had the name ``before``, the UID of one that is newer than the API server's pod, if
       the kubelet may have lost its units;
    4. the UID of the API server's pod of this name;
    5. the UID that the name had ``before``, or is ``remembered`` with from another process of ours, if the
       checkpoint alone has units of it.

    The other entries of the checkpoint are of pods that have ended since it was written. A pod that has
    ended, that had units of ordinary init containers alone, and whose name is another's now, looks the same.
    What is as it was ``before`` is the same object, so that it compares fast.

    Of two pods of one name, the one that the API server has goes by the name. The other keeps the key that
    ``place`` gave it while a restarted kubelet lists it alone: the first may follow.
    """
    stored = by_pod(entries)
    uids = {
        key: entry.uid
        for containers in stored.values()
        for entry in containers.values()
        for key in _units(entry.container, entry.numbers, entry.foreign)
    }
    identified = {
        key: assignment
        if before.pods.get(key) is assignment
        else _sharing(assignment, stored.get(assignment.uid, {}))
        for key, assignment in _identified(listed, uids, before, pods, remembered=remembered)
    }
    active = {assignment.uid for assignment in identified.values()}
    return replace(
        listed,
        pods=identified,
        stored={uid: containers for uid, containers in stored.items() if uid in active},
    )


def with_stored(
    assigned: AssignedDevices, stored: Mapping[str, StoredContainers], pods: Pods
) -> AssignedDevices:
    """Returns what was ``assigned`` last with what the checkpoint says by now of the same pods.

    While PodResources do not answer, their last answer stays, which may be of a moment at which a pod was
    being admitted. What the checkpoint no longer says stays, too: the checkpoint may be lost.
    """
    named = {name: _named(assignment, stored, pods.get(name)) for name, assignment in assigned.pods.items()}
    active = {assignment.uid for assignment in named.values()} & stored.keys()
    newer = {uid: stored[uid] for uid in active}
    return replace(assigned, pods=named, stored={**assigned.stored, **newer})


def _named(
    assignment: PodAssignment, stored: Mapping[str, StoredContainers], pod: Pod | None
) -> PodAssignment:
    """The API server may have shown the pod only after it was listed."""
    is_stored = not assignment.uid and pod is not None and pod.kubelet_uid in stored
    return assignment.with_uid(pod.kubelet_uid) if pod and is_stored else assignment


def _sharing(assignment: PodAssignment, stored: StoredContainers) -> PodAssignment:
    """Returns ``assignment`` with the numbers of the checkpoint where these are equal: of 256,000 units a
    second array takes a megabyte."""
    containers = {
        name: entry.numbers if (entry := stored.get(name)) and entry.numbers == numbers else numbers
        for name, numbers in assignment.containers.items()
    }
    return replace(assignment, containers=containers)


def _identified(
    listed: AssignedDevices,
    uids: Mapping[Units, str],
    before: AssignedDevices,
    pods: Pods,
    *,
    remembered: Mapping[PodName, str],
) -> Iterator[tuple[PodName, PodAssignment]]:
    earlier = _by_name(before)
    for name, every in _by_name(listed).items():
        former, pod = earlier.get(name, {}), pods.get(name)
        if len(every) > 1:
            yield from _apart([*every.values()], uids, [*former.values()], pod).items()
        else:
            (found,) = every.values()
            lost = _may_have_lost(name, listed, before)
            uid = _uid(found, uids, former, pod, lost=lost, remembered=remembered.get(name, ""))
            only = found.with_uid(uid)
            only = _instead_of(only, former.values(), pod)
            key = _key(only, former, pod)
            known = former.get(key)
            yield key, known if known and known == only else only


def _may_have_lost(name: PodName, listed: AssignedDevices, before: AssignedDevices) -> bool:
    """Whether the kubelet that listed the pod may know nothing of what the pod had before."""
    known = before.pods.get(name)
    is_restarted = listed.kubelet != before.kubelet or name in before.unshown
    return known is not None and (is_restarted or not known.has_units)


def _instead_of(only: PodAssignment, former: Iterable[PodAssignment], pod: Pod | None) -> PodAssignment:
    """Returns ``only``, marked as newer than ``pod`` where we had heard of ``pod`` alone when the checkpoint
    had it."""
    if pod is None or not only.uid or only.uid == pod.kubelet_uid:
        return only
    known = next((assignment for assignment in former if assignment.uid == only.uid), None)
    if known is None or known.is_unheard_of(pod):
        return replace(only, instead_of=pod.kubelet_uid)
    return only


def _by_name(assigned: AssignedDevices) -> dict[PodName, dict[PodName, PodAssignment]]:
    """Returns name -> the pods of that name, by their keys."""
    if all(assignment.name == key for key, assignment in assigned.pods.items()):
        return {name: {name: assignment} for name, assignment in assigned.pods.items()}
    found: dict[PodName, dict[PodName, PodAssignment]] = {}
    for key, assignment in assigned.pods.items():
        found.setdefault(assignment.name, {})[key] = assignment
    return found


def _apart(
    every: Sequence[PodAssignment],
    uids: Mapping[Units, str],
    before: Sequence[PodAssignment],
    pod: Pod | None,
) -> dict[PodName, PodAssignment]:
    """Returns pods of one name with their UIDs, first the one that the API server has: ``pod``."""
    identified = [replace(assignment, uid=_uid_of_units(assignment, uids, before)) for assignment in every]
    own = pod.kubelet_uid if pod else ""
    if pod and own not in {assignment.uid for assignment in identified}:
        unknown = [at for at, assignment in enumerate(identified) if not assignment.uid]
        at = min(unknown, key=lambda at: not _has_as_asked(identified[at], pod), default=None)
        identified = [
            replace(known, uid=own) if number == at else known for number, known in enumerate(identified)
        ]
    return place(sorted(identified, key=lambda assignment: assignment.uid != own))


def _has_as_asked(assignment: PodAssignment, pod: Pod) -> bool:
    """Whether all units of ``assignment`` are such as ``pod`` asks for."""
    asked = pod.request.containers if pod.request else {}
    return all(len(numbers) == asked.get(name) for name, numbers in assignment.containers.items() if numbers)


def _key(only: PodAssignment, former: Mapping[PodName, PodAssignment], pod: Pod | None) -> PodName:
    """Returns the key of the only listed pod of its name. A restarted kubelet may list the pod first that
    goes by another key, and later the one that goes by the name."""
    if only.name not in former or not only.uid or (pod and pod.kubelet_uid == only.uid):
        return only.name
    return next((key for key, assignment in former.items() if assignment.uid == only.uid), only.name)


def _uid(
    assignment: PodAssignment,
    uids: Mapping[Units, str],
    former: Mapping[PodName, PodAssignment],
    pod: Pod | None,
    *,
    lost: bool,
    remembered: str,
) -> str:
    """``lost``: as ``_may_have_lost``."""
    if uid := _uid_of_units(assignment, uids, former.values()):
        return uid
    if pod is not None:
        newer = (earlier.uid for earlier in former.values() if lost and earlier.is_unheard_of(pod))
        return next(newer, pod.kubelet_uid)
    before = former.get(assignment.name)
    if assignment.has_units or (before is not None and before.has_units):
        return ""
    known = (before.uid if before is not None else "", remembered)
    return next((uid for uid in known if uid in uids.values()), "")


def _uid_of_units(
    assignment: PodAssignment, uids: Mapping[Units, str], before: Iterable[PodAssignment]
) -> str:
    """Returns the UID that the units have in the checkpoint, or had before; empty where neither says it."""
    for container, numbers in assignment.containers.items():
        for key in _units(container, numbers, assignment.foreign.get(container, ())):
            if key in uids:
                return uids[key]
    return next((earlier.uid for earlier in before if earlier.uid and _share_units(assignment, earlier)), "")


def _units(container: str, numbers: "array[int]", foreign: Iterable[ForeignUnits]) -> Iterator[Units]:
    if numbers:
        yield container, "", numbers[0], len(numbers)
    for units in foreign:
        yield container, *units.key


def _share_units(one: PodAssignment, other: PodAssignment) -> bool:
    own = (numbers and numbers == other.containers.get(name) for name, numbers in one.containers.items())
    foreign = (units == other.foreign.get(name) for name, units in one.foreign.items())
    return any(own) or any(foreign)
