"""What pods have of which their kubelet knows nothing any more: their containers run on.

A kubelet that starts without its checkpoint gives nothing to containers that run, and lists them without
units. What they have was told before: by the kubelet process before it, else in the status of the
GPUShareNode. The annotation of a static pod goes with its mirror, which anybody may delete. Source:
``isContainerAlreadyRunning`` of ``devicemanager.ManagerImpl`` (1.36).
"""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from gpushare_core.allocation_annotation import Shares, sum_shares
from gpushare_core.api.share_node import NodeStatus
from gpushare_core.placement.modes.table import class_of_lock
from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.allocations import (
    containers_without_units,
    lost_containers,
    lost_units,
)
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices, NodeAssignments
from gpushare_plugin.decide.held.kubelet_restart import PodsListedSinceRestart
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, PodName, Pods
from gpushare_plugin.decide.units.errors import UnusableUnitsError
from gpushare_plugin.decide.units.layout import Layout, PlacedCard
from gpushare_plugin.decide.units.unit_ids import UnitSet

Remembered = Mapping[PodName, PodAllocation]
"""What pods had before a kubelet was started, of those that it has not shown with all of it since."""
LOST = "see LedgerInSync"
NOT_SHOWN = "and it has not listed all of their pods since its start: create the pod anew"


def still_remembered(
    remembered: Remembered, assigned: AssignedDevices, shown: PodsListedSinceRestart, pods: Pods
) -> Remembered:
    """Returns what is left of ``remembered`` after one answer more: not what pods had that have ended, nor
    what the kubelet lists."""
    left = ((name, _left(each, assigned, shown, pods)) for name, each in remembered.items())
    return {name: each for name, each in left if each}


def lost_assignments(remembered: Remembered, assigned: AssignedDevices) -> Remembered:
    """Returns what listed pods had and are listed without, or were listed without before a kubelet was
    started that has not shown them yet."""
    found = ((name, _lost_part(name, each, assigned)) for name, each in remembered.items())
    return {name: each for name, each in found if each}


def _lost_part(name: PodName, known: PodAllocation, assigned: AssignedDevices) -> PodAllocation | None:
    """What a container has whose pod is not shown yet stays assigned, if it was listed with it before."""
    before = assigned.pods.get(name)
    if before is None or name not in assigned.unshown:
        return known if before else None
    has_units = before.has_units or assigned.stored.get(before.uid)
    return _without_listed(known, before, assigned) if has_units else known


def _left(
    known: PodAllocation, assigned: AssignedDevices, shown: PodsListedSinceRestart, pods: Pods
) -> PodAllocation | None:
    name, pod = known.pod.name, pods.get(known.pod.name)
    if pod is not None and _is_newer(known, pod, assigned):
        pod = None
    if pod is not None and not known.is_of(pod):
        if not _may_be_unheard_of(pod, known, assigned):
            return None
        pod = None
    if pod is not None:
        known = _as_asked(known, pod)
    if listed := _listed(name, assigned):
        left = _without_listed(known, listed, assigned)
        is_settled = pod is not None and _has_uid_of(known, pod)
        return replace(left, recorded=left.recorded and not is_settled) if left else None
    return known if shown.may_still_be_listed(name, known=pod is not None) else None


def _is_newer(known: PodAllocation, pod: Pod, assigned: AssignedDevices) -> bool:
    """Whether it is of a pod that took the name of ``pod``: we have not heard of that pod's end yet."""
    listed = assigned.pods.get(pod.name)
    return listed is not None and listed.uid == known.pod.kubelet_uid and listed.is_unheard_of(pod)


def _may_be_unheard_of(pod: Pod, known: PodAllocation, assigned: AssignedDevices) -> bool:
    """Whether the kubelet may not have heard of ``pod`` yet, and lists the one that had its name before and
    was deleted by force.

    The mirror of a static pod it makes itself. One that asks for no units of containers that it lists would
    never be told apart from the former one, and the record may be of a former mirror.
    """
    asks = pod.request is None or bool(pod.request.running_containers)
    if known.recorded or pod.static_uid or pod.started or not asks:
        return False
    listed = _listed(pod.name, assigned)
    is_former = listed is None or not listed.has_units or listed.uid == known.pod.kubelet_uid
    return is_former and not assigned.stored_of(pod)


def _as_asked(known: PodAllocation, pod: Pod) -> PodAllocation:
    """Returns ``known`` without what a static pod does not ask for whose file was written anew."""
    if _has_uid_of(known, pod) or pod.request is None:
        return known
    asked = pod.request.containers
    shares = {name: each for name, each in known.containers.items() if sum(each.values()) == asked.get(name)}
    return replace(known, pod=pod, containers=shares, cards=sum_shares(shares))


def _has_uid_of(known: PodAllocation, pod: Pod) -> bool:
    return replace(known, recorded=False).is_of(pod)


def _listed(name: PodName, assigned: AssignedDevices) -> PodAssignment | None:
    return None if name in assigned.unshown else assigned.pods.get(name)


def _without_listed(
    known: PodAllocation, listed: PodAssignment, assigned: AssignedDevices
) -> PodAllocation | None:
    """A container that was started anew has units again. Ordinary init containers are never listed."""
    stored = assigned.stored.get(listed.uid, {})
    lacking = [name for name in listed.containers if not listed.has(name) and name not in stored]
    left = known.of_containers(lacking)
    if left.containers and (listed.units or stored or known.recorded):
        return left
    return known if left.containers else None


def recorded_holdings(status: NodeStatus, pods: Pods) -> Remembered:
    """Returns what pods have by ``status``, as far as it can be theirs still.

    The mirror of a static pod may have been made anew, or will be: its name is all that the record knows it
    by, and what its containers ask for tells it from one whose file was written anew.
    """
    shares: dict[tuple[PodName, str], dict[str, dict[str, int]]] = {}
    for card in status.cards:
        for each in card.pods:
            key = PodName(each.namespace, each.name), each.uid
            shares.setdefault(key, {}).setdefault(each.container, {})[card.uuid] = each.units
    classes = {card.uuid: lock for card in status.cards if (lock := class_of_lock(card.lock))}
    found = [
        _recorded(pod, containers, classes)
        for (name, uid), containers in shares.items()
        if (pod := _pod_of(name, uid, pods))
    ]
    return {each.pod.name: each for each in found}


def _pod_of(name: PodName, uid: str, pods: Pods) -> Pod | None:
    pod = pods.get(name)
    if pod is None:
        return Pod(name=name, uid=uid)
    if uid in (pod.uid, pod.kubelet_uid):
        return pod
    return Pod(name=name, uid=uid) if pod.static_uid else None


def _recorded(
    pod: Pod, containers: Mapping[str, Mapping[str, int]], classes: Mapping[str, ResourceClass]
) -> PodAllocation:
    """Units that ordinary init containers lend are counted twice until the kubelet lists the others."""
    cards = sum_shares(containers)
    held = {card: classes[card] for card in cards if card in classes}
    return PodAllocation(pod, containers, cards, classes=held, recorded=True)


def shares_to_get_again(pod: Pod, assigned: AssignedDevices, units: int, *, resource: str = "") -> Shares:
    """Returns what a lost container that asks for ``units`` of ``resource`` has, of any where that is
    empty: a pod of a node in mode ``Mixed`` can ask for as many slices as GiB.

    The kubelet does not say which container restarts: nothing where several ask for as many.
    """
    asking = [*_asking(pod, assigned, units, resource=resource).values()]
    return asking[0] if len(asking) == 1 else {}


def has_known_cards(pod: Pod, assigned: AssignedDevices, units: int, *, resource: str = "") -> bool:
    """Whether those lost containers of ``pod`` that ask for ``units`` of ``resource`` have the same
    cards: else one that restarts could get the cards with which another one runs."""
    asking = [*_asking(pod, assigned, units, resource=resource).values()]
    return all(each == asking[0] for each in asking)


def running_beside(
    pod: Pod, assigned: AssignedDevices, units: int, *, resource: str = ""
) -> Mapping[str, Shares]:
    """Returns what the other lost containers of ``pod`` run with beside the one that asks for ``units``
    of ``resource``: container -> card UUID -> units.

    Nothing where that one is an ordinary init container: those that run have what it lends them.
    """
    asking = next(iter(_asking(pod, assigned, units, resource=resource)), None)
    if asking is None and _is_init_asking(pod, assigned, units, resource=resource):
        return {}
    known = _lost_shares(pod, assigned)
    return {name: known.get(name, {}) for name in lost_containers(pod, assigned) if name != asking}


def _is_init_asking(pod: Pod, assigned: AssignedDevices, units: int, *, resource: str) -> bool:
    """Whether none but ordinary init containers of ``pod`` can ask for ``units`` of ``resource``."""
    asked = _asked(pod, resource)
    others = containers_without_units(pod, assigned)
    return units in asked.values() and all(asked.get(name) != units for name in others)


def _asking(pod: Pod, assigned: AssignedDevices, units: int, *, resource: str) -> Mapping[str, Shares]:
    """Returns the lost containers that may ask for ``units`` of ``resource``, with what each has."""
    containers = _lost_shares(pod, assigned)
    others = pod.request.containers.keys() - _asked(pod, resource).keys() if pod.request else frozenset()
    names = [name for name in lost_containers(pod, assigned) if name not in others]
    shares = {name: containers.get(name, {}) for name in names}
    return {name: each for name, each in shares.items() if sum(each.values()) == units}


def _asked(pod: Pod, resource: str) -> Mapping[str, int]:
    """Returns container -> how much of ``resource`` it asks for; of any where that is empty."""
    if pod.request is None:
        return {}
    if not resource:
        return pod.request.containers
    asked = (each.containers for each in pod.request.resources if each.name == resource)
    return {name: units for containers in asked for name, units in containers.items()}


def require_room_beside_unlisted(
    numbers: Sequence[int],
    resource: ResourceClass,
    *,
    taken: Iterable[Sequence[int]],
    assignments: NodeAssignments,
    pods: Pods,
    candidates: Sequence[Pod] = (),
    unavailable: bool = False,
) -> None:
    """Raises ``UnusableUnitsError`` where ``numbers`` beside those ``taken``, lost ones, and those of
    pods that are not shown yet are more than their card has, unless they can be those of a lost
    container that is started anew.

    ``taken``: units that the kubelet has given away, or was told to give, those of each container by
    themselves. ``candidates``: pods for a container of one of which the kubelet may be asking.
    ``unavailable``: whether
    PodResources do not answer. Else the pod that is being admitted is shown.
    """
    layout, assigned = assignments.layout.of(resource), assignments.assigned
    is_new = not any(lost_containers(each, assigned) for each in candidates)
    is_alone = not unavailable and not any(
        running_beside(each, assigned, len(numbers)) for each in candidates
    )
    own: dict[str, Shares] = {each.uid: {} for each in candidates if is_new or is_alone}
    lost = lost_units(assignments, pods, but_of=own)
    unshown = _met(numbers, _unshown_holdings(assigned, unavailable=unavailable), layout)
    shares = layout.shares(numbers) if lost or unshown else {}
    beginning = chain(
        _lost_of_all(candidates, assigned), _every_unshown(assigned, layout) if unavailable else ()
    )
    if {*lost, *unshown}.isdisjoint(shares) or shares in beginning:
        return
    used = UnitSet.of(taken)
    added = layout.shares([number for number in numbers if not used.has(number)])
    for placed in (card for card in layout.cards if card.uuid in {**added, **unshown}):
        uncounted = lost.get(placed.uuid, 0) + unshown.get(placed.uuid, 0)
        count = used.count(placed.numbers) + added.get(placed.uuid, 0) + uncounted
        if uncounted and count > placed.units:
            why = NOT_SHOWN if placed.uuid in unshown else LOST
            raise UnusableUnitsError(_no_room(placed, count, uncounted, why))


def _no_room(placed: PlacedCard, count: int, uncounted: int, why: str) -> str:
    return (
        f"{count} of {placed.units} units of card {placed.card.index} ({placed.uuid}) would be in"
        f" use: containers run with {uncounted} of them that the kubelet calls free, {why}"
    )


def _met(numbers: Iterable[int], holdings: Iterable[Sequence[int]], layout: Layout) -> Mapping[str, int]:
    """Returns card UUID -> how many of ``numbers`` are in ``holdings``, too."""
    asked = {*numbers}
    return layout.shares(sorted(asked.intersection(chain.from_iterable(holdings))))


def _unshown_holdings(assigned: AssignedDevices, *, unavailable: bool) -> "Iterator[array[int]]":
    """Yields the units of each container whose pod the kubelet has not listed since its start.

    Where it is ``unavailable`` the checkpoint alone tells of nobody: it shows pods that have ended.
    """
    listed = {each.uid for name, each in assigned.pods.items() if name not in assigned.unshown}
    for name in assigned.unshown:
        yield from assigned.pods[name].containers.values()
    for uid, entries in assigned.stored.items():
        if not unavailable and uid not in listed:
            yield from (entry.numbers for entry in entries.values())


def _every_unshown(assigned: AssignedDevices, layout: Layout) -> Iterator[Shares]:
    """Yields what each container has whose pod is not shown yet."""
    for name in assigned.unshown:
        each = assigned.pods[name]
        yield from map(layout.shares, each.containers.values())
        yield from (layout.shares(it.numbers) for it in assigned.stored.get(each.uid, {}).values())


def _lost_of_all(candidates: Sequence[Pod], assigned: AssignedDevices) -> Iterator[Shares]:
    """Yields what each lost container has; nothing where one of the pods has none: it may be that one
    which is being admitted, and asks for as much."""
    found = [(pod, lost_containers(pod, assigned)) for pod in candidates]
    for pod, names in found if all(names for _, names in found) else ():
        containers = _lost_shares(pod, assigned)
        yield from (containers.get(name, {}) for name in names)


def _lost_shares(pod: Pod, assigned: AssignedDevices) -> Mapping[str, Shares]:
    """Returns container -> card UUID -> units: what the kubelet listed before, else what is annotated."""
    lost = assigned.lost_of(pod)
    annotated = pod.allocation.containers if pod.allocation else {}
    return {**annotated, **lost.containers} if lost else annotated
