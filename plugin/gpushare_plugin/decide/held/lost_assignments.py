"""What pods have of which their kubelet knows nothing any more: their containers run on.

A kubelet that starts without its checkpoint gives nothing to containers that run, and lists them without
units. What they have was known before: to the kubelet process before it, else to the status of the
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
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.units.unit_ids import UnitSet

Remembered = Mapping[PodName, PodAllocation]
"""What pods had before a kubelet was started, as long as it has not listed all of it since."""
LOST = "see LedgerInSync"
NOT_SHOWN = "and it has not listed all of their pods since its start: create the pod again"


def still_remembered(
    remembered: Remembered, assigned: AssignedDevices, shown: PodsListedSinceRestart, pods: Pods
) -> Remembered:
    """Returns what is left of ``remembered`` after one answer more: not what ended pods had, or what is
    listed."""
    left = ((name, _left(known, assigned, shown, pods)) for name, known in remembered.items())
    return {name: known for name, known in left if known}


def lost_assignments(remembered: Remembered, assigned: AssignedDevices) -> Remembered:
    """Returns what listed pods had and are listed without; before a restarted kubelet lists them, by the last
    list."""
    found = ((name, _lost_part(name, known, assigned)) for name, known in remembered.items())
    return {name: known for name, known in found if known}


def _lost_part(name: PodName, known: PodAllocation, assigned: AssignedDevices) -> PodAllocation | None:
    """While the pod was not listed since the restart, its containers keep the units with which they were
    listed before: the rest is lost."""
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
    """Whether ``known`` is of a pod that took the name of ``pod``, of whose end we have not heard yet."""
    listed = assigned.pods.get(pod.name)
    return listed is not None and listed.uid == known.pod.kubelet_uid and listed.is_unheard_of(pod)


def _may_be_unheard_of(pod: Pod, known: PodAllocation, assigned: AssignedDevices) -> bool:
    """Whether the kubelet may not have heard of ``pod`` yet, and lists the pod that had its name before and
    was deleted by force. Not where:
    1. ``pod`` is a static pod: the kubelet makes the mirror itself;
    2. the GPUShareNode alone says what is ``known``: it may be of a former mirror;
    3. no listed container of ``pod`` would ask for units: nothing would ever tell the two apart."""
    asks = pod.request is None or bool(pod.request.running_containers)
    if known.recorded or pod.static_uid or pod.started or not asks:
        return False
    listed = _listed(pod.name, assigned)
    is_former = listed is None or not listed.has_units or listed.uid == known.pod.kubelet_uid
    return is_former and not assigned.stored_of(pod)


def _as_asked(known: PodAllocation, pod: Pod) -> PodAllocation:
    """Returns ``known`` without what a static pod does not ask for any more, whose file was written anew."""
    if _has_uid_of(known, pod) or pod.request is None:
        return known
    asked = pod.request.containers
    shares = {name: held for name, held in known.containers.items() if sum(held.values()) == asked.get(name)}
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
    """Returns what pods have by ``status``, as far as it can still be theirs.

    The mirror of a static pod may have been made anew, or will be: the record knows the pod by its name
    alone, and what its containers ask for shows whether its file was written anew.
    """
    shares: dict[tuple[PodName, str], dict[str, dict[str, int]]] = {}
    for card in status.cards:
        for share in card.pods:
            key = PodName(share.namespace, share.name), share.uid
            shares.setdefault(key, {}).setdefault(share.container, {})[card.uuid] = share.units
    classes = {card.uuid: lock for card in status.cards if (lock := class_of_lock(card.lock))}
    found: dict[PodName, PodAllocation] = {}
    for (name, uid), containers in shares.items():
        if pod := _pod_of(name, uid, pods):
            # Units that ordinary init containers lend count twice until the kubelet lists the others.
            cards = sum_shares(containers)
            held = {card: classes[card] for card in cards if card in classes}
            found[pod.name] = PodAllocation(pod, containers, cards, classes=held, recorded=True)
    return found


def _pod_of(name: PodName, uid: str, pods: Pods) -> Pod | None:
    pod = pods.get(name)
    if pod is None:
        return Pod(name=name, uid=uid)
    if uid in (pod.uid, pod.kubelet_uid):
        return pod
    return Pod(name=name, uid=uid) if pod.static_uid else None


def shares_to_get_again(pod: Pod, assigned: AssignedDevices, units: int, *, resource: str = "") -> Shares:
    """Returns what the lost container has that asks for ``units`` of ``resource``; of any where that is
    empty. A pod on a node in mode ``Mixed`` can ask for as many slices as GiB.

    Nothing where several ask for as many: the kubelet does not say which container restarts.
    """
    asking = [*_asking(pod, assigned, units, resource=resource).values()]
    return asking[0] if len(asking) == 1 else {}


def has_known_cards(pod: Pod, assigned: AssignedDevices, units: int, *, resource: str = "") -> bool:
    """Whether all lost containers of ``pod`` that ask for ``units`` of ``resource`` have the same cards. Else
    one that restarts could get the cards with which another one runs."""
    asking = [*_asking(pod, assigned, units, resource=resource).values()]
    return all(shares == asking[0] for shares in asking)


def running_beside(
    pod: Pod, assigned: AssignedDevices, units: int, *, resource: str = ""
) -> Mapping[str, Shares]:
    """Returns what the other lost containers of ``pod`` run with beside the one that asks for ``units`` of
    ``resource``: container -> card UUID -> units.

    Nothing where only an ordinary init container can be asking: those that run have what it lends them.
    """
    asking = next(iter(_asking(pod, assigned, units, resource=resource)), None)
    if asking is None:
        asked, others = _asked(pod, resource), containers_without_units(pod, assigned)
        if units in asked.values() and all(asked.get(name) != units for name in others):
            return {}
    known = _lost_shares(pod, assigned)
    return {name: known.get(name, {}) for name in lost_containers(pod, assigned) if name != asking}


def _asking(pod: Pod, assigned: AssignedDevices, units: int, *, resource: str) -> Mapping[str, Shares]:
    """Returns the lost containers that may ask for ``units`` of ``resource``, with what each has."""
    containers = _lost_shares(pod, assigned)
    others = pod.request.containers.keys() - _asked(pod, resource).keys() if pod.request else frozenset()
    names = [name for name in lost_containers(pod, assigned) if name not in others]
    shares = {name: containers.get(name, {}) for name in names}
    return {name: held for name, held in shares.items() if sum(held.values()) == units}


def _asked(pod: Pod, resource: str) -> Mapping[str, int]:
    """Returns container -> how much of ``resource`` it asks for; of any where that is empty."""
    if pod.request is None:
        return {}
    if not resource:
        return pod.request.containers
    asked = (request.containers for request in pod.request.resources if request.name == resource)
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
    """Raises ``UnusableUnitsError`` where a card has no room for ``numbers`` beside these units:
    1. those ``taken``: the kubelet has given them away, or was told to, each container's by themselves;
    2. those that the kubelet has lost;
    3. those of pods that the kubelet has not listed since its start.

    Not where ``numbers`` can be the units of a lost container that is started anew.

    ``candidates``: the pods that the kubelet may be asking for. ``unavailable``: whether PodResources do not
    answer; else they list the pod that is being admitted.
    """
    layout, assigned = assignments.layout.of(resource), assignments.assigned
    is_new = not any(lost_containers(pod, assigned) for pod in candidates)
    is_alone = not unavailable and not any(running_beside(pod, assigned, len(numbers)) for pod in candidates)
    own: dict[str, Shares] = {pod.uid: {} for pod in candidates if is_new or is_alone}
    lost = lost_units(assignments, pods, candidates=own)
    unlisted = chain.from_iterable(_unshown_holdings(assigned, unavailable=unavailable))
    unshown = layout.shares(sorted({*numbers}.intersection(unlisted)))
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
            raise UnusableUnitsError(
                f"{count} of {placed.units} units of card {placed.card.index} ({placed.uuid}) would be in"
                f" use: containers run with {uncounted} of them that the kubelet calls free, {why}"
            )


def _unshown_holdings(assigned: AssignedDevices, *, unavailable: bool) -> "Iterator[array[int]]":
    """Yields the units of each container whose pod the kubelet has not listed since its start.

    The checkpoint shows pods that have ended: while PodResources are ``unavailable`` it alone is no evidence.
    """
    listed = {assignment.uid for name, assignment in assigned.pods.items() if name not in assigned.unshown}
    for name in assigned.unshown:
        yield from assigned.pods[name].containers.values()
    for uid, entries in assigned.stored.items():
        if not unavailable and uid not in listed:
            yield from (entry.numbers for entry in entries.values())


def _every_unshown(assigned: AssignedDevices, layout: Layout) -> Iterator[Shares]:
    for name in assigned.unshown:
        pod = assigned.pods[name]
        yield from map(layout.shares, pod.containers.values())
        yield from (layout.shares(entry.numbers) for entry in assigned.stored.get(pod.uid, {}).values())


def _lost_of_all(candidates: Sequence[Pod], assigned: AssignedDevices) -> Iterator[Shares]:
    """Yields what each lost container has; nothing where one of the pods lost nothing: the kubelet may be
    asking for as much for that one."""
    found = [(pod, lost_containers(pod, assigned)) for pod in candidates]
    for pod, names in found if all(names for _, names in found) else ():
        containers = _lost_shares(pod, assigned)
        yield from (containers.get(name, {}) for name in names)


def _lost_shares(pod: Pod, assigned: AssignedDevices) -> Mapping[str, Shares]:
    """Returns container -> card UUID -> units: as the kubelet listed them before, else as annotated."""
    lost = assigned.lost_of(pod)
    annotated = pod.allocation.containers if pod.allocation else {}
    return {**annotated, **lost.containers} if lost else annotated
