"""Which pod it is that PodResources list: they know its name only, and names are used again."""

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
"""A container, the lowest of its units and how many they are: no two pods have that in common.

What foreign IDs begin with stands before that; it is empty for our own.
"""


def identify(
    listed: AssignedDevices,
    entries: Iterable[CheckpointEntry],
    before: AssignedDevices,
    pods: Pods,
    *,
    remembered: Mapping[PodName, str] = MappingProxyType({}),
) -> AssignedDevices:
    """Returns what is ``listed`` with the pods' UIDs, and what the checkpoint says of these pods.

    A UID is the one under which the checkpoint has the same units; else the one that these units had
    ``before``; else that of the API's pod of this name, unless the name had a newer one ``before`` of which
    the kubelet may have lost the units; else the one that the name had before, or is ``remembered`` with from
    another process of ours, where the checkpoint alone shows units of it. The checkpoint's other entries are
    of pods that have ended since it was written. (One that has ended, whose units were an ordinary init
    container's alone and whose name another pod has now, cannot be told from that.)

    What is as it was ``before`` is the same object: then what follows from it is not worked out again.

    Of two pods of one name it is the one that the API server has. The other one keeps the key that ``place``
    gave it while a kubelet that was restarted lists it alone: the first may follow.
    """
    stored = by_pod(entries)
    uids = {
        key: entry.uid
        for each in stored.values()
        for entry in each.values()
        for key in _units(entry.container, entry.numbers, entry.foreign)
    }
    identified = {
        key: each if before.pods.get(key) is each else _sharing(each, stored.get(each.uid, {}))
        for key, each in _identified(listed, uids, before, pods, remembered=remembered)
    }
    active = {assignment.uid for assignment in identified.values()}
    return replace(
        listed, pods=identified, stored={uid: each for uid, each in stored.items() if uid in active}
    )


def with_stored(
    assigned: AssignedDevices, stored: Mapping[str, StoredContainers], pods: Pods
) -> AssignedDevices:
    """Returns what was ``assigned`` last with what the checkpoint says by now of the same pods.

    While PodResources do not answer the last answer stays, and may be of a moment at which a pod was being
    admitted. What the checkpoint says no more stays, too: it may be lost.
    """
    named = {name: _named(each, stored, pods.get(name)) for name, each in assigned.pods.items()}
    active = {each.uid for each in named.values()} & stored.keys()
    told = {uid: stored[uid] for uid in active}
    return replace(assigned, pods=named, stored={**assigned.stored, **told})


def _named(
    assignment: PodAssignment, stored: Mapping[str, StoredContainers], pod: Pod | None
) -> PodAssignment:
    """The API server may have told of the pod only after it was listed."""
    is_stored = not assignment.uid and pod is not None and pod.kubelet_uid in stored
    return assignment.with_uid(pod.kubelet_uid) if pod and is_stored else assignment


def _sharing(assignment: PodAssignment, stored: StoredContainers) -> PodAssignment:
    """Returns ``assignment`` with the numbers that the checkpoint has, where these are the same: of 256,000
    units a second array takes a megabyte."""
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
    """Whether what is listed of the pod may be of a kubelet that knows nothing of what it had before."""
    known = before.pods.get(name)
    is_restarted = listed.kubelet != before.kubelet or name in before.unshown
    return known is not None and (is_restarted or not known.has_units)


def _instead_of(only: PodAssignment, former: Iterable[PodAssignment], pod: Pod | None) -> PodAssignment:
    """Returns ``only`` with what tells that it is newer than ``pod``: the checkpoint had it when we had heard
    of that one alone."""
    if pod is None or not only.uid or only.uid == pod.kubelet_uid:
        return only
    known = next((each for each in former if each.uid == only.uid), None)
    if known is None or known.is_unheard_of(pod):
        return replace(only, instead_of=pod.kubelet_uid)
    return only


def _by_name(assigned: AssignedDevices) -> dict[PodName, dict[PodName, PodAssignment]]:
    """Returns name -> the pods of that name, by what they go by."""
    if all(each.name == key for key, each in assigned.pods.items()):
        return {name: {name: each} for name, each in assigned.pods.items()}
    found: dict[PodName, dict[PodName, PodAssignment]] = {}
    for key, each in assigned.pods.items():
        found.setdefault(each.name, {})[key] = each
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
    if pod and own not in {each.uid for each in told}:
        unknown = [at for at, each in enumerate(told) if not each.uid]
        at = min(unknown, key=lambda at: not _has_as_asked(told[at], pod), default=None)
        told = [replace(each, uid=own) if number == at else each for number, each in enumerate(told)]
    return place(sorted(told, key=lambda each: each.uid != own))


def _has_as_asked(assignment: PodAssignment, pod: Pod) -> bool:
    """Whether all units of ``assignment`` are such as ``pod`` asks for."""
    asked = pod.request.containers if pod.request else {}
    return all(len(each) == asked.get(name) for name, each in assignment.containers.items() if each)


def _key(only: PodAssignment, former: Mapping[PodName, PodAssignment], pod: Pod | None) -> PodName:
    """Returns what the only pod of its name goes by. A kubelet that was restarted may list the one first that
    has another name, and the one that has this name later."""
    if only.name not in former or not only.uid or (pod and pod.kubelet_uid == only.uid):
        return only.name
    return next((key for key, each in former.items() if each.uid == only.uid), only.name)


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
    if told := _told_uid(assignment, uids, former.values()):
        return told
    if pod is not None:
        newer = (each.uid for each in former.values() if lost and each.is_unheard_of(pod))
        return next(newer, pod.kubelet_uid)
    before = former.get(assignment.name)
    if assignment.has_units or (before is not None and before.has_units):
        return ""
    known = (before.uid if before is not None else "", remembered)
    return next((uid for uid in known if uid in uids.values()), "")


def _told_uid(assignment: PodAssignment, uids: Mapping[Units, str], before: Iterable[PodAssignment]) -> str:
    """Returns the UID that the units have in the checkpoint, or had before; empty where neither says it."""
    for container, numbers in assignment.containers.items():
        for key in _units(container, numbers, assignment.foreign.get(container, ())):
            if key in uids:
                return uids[key]
    return next((each.uid for each in before if each.uid and _share_units(assignment, each)), "")


def _units(container: str, numbers: "array[int]", foreign: Iterable[ForeignUnits]) -> Iterator[Units]:
    if numbers:
        yield container, "", numbers[0], len(numbers)
    for each in foreign:
        yield container, *each.key


def _share_units(one: PodAssignment, other: PodAssignment) -> bool:
    own = (numbers and numbers == other.containers.get(name) for name, numbers in one.containers.items())
    foreign = (units == other.foreign.get(name) for name, units in one.foreign.items())
    return any(own) or any(foreign)
