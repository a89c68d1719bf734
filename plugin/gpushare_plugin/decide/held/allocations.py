"""What pods have: the units that the kubelet assigned to them, and the cards that follow from these.

The assignment is read from PodResources and, where it can be read, from the kubelet's checkpoint, which knows
UIDs, ordinary init containers, and the card that each container was given.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple

from gpushare_core.allocation_annotation import Allocation, Shares, sum_shares
from gpushare_core.placement.modes.table import mode_serving
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.placement.units import readable_unit
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices, NodeAssignments
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredContainers
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, Pods
from gpushare_plugin.decide.units.foreign_units import (
    ForeignContainers,
    foreign_classes,
    foreign_shares,
)
from gpushare_plugin.decide.units.layout import Layout
from gpushare_plugin.decide.units.locks import locks_of_units


def orphans(assigned: AssignedDevices, pods: Pods) -> list[PodAssignment]:
    """Returns the pods for which the kubelet keeps units although the API server does not know them."""
    return [pod for pod in assigned.pods_with_units() if not is_known(pod, pods)]


def orphaned_allocations(assignments: NodeAssignments, pods: Pods) -> Iterator[PodAllocation]:
    """Yields what the pods have that the API server does not know (any more)."""
    assigned = assignments.assigned
    for assignment in orphans(assigned, pods):
        pod = Pod(name=assignment.name, uid=assignment.uid)
        has_name = assigned.pods.get(assignment.name) is assignment
        if not (has_name and assignment.name in assigned.lost):
            yield replace(_seen_allocation(pod, assignment, assignments), orphaned=True)
    yield from _lost_orphans(assignments, pods)


def _lost_orphans(assignments: NodeAssignments, pods: Pods) -> Iterator[PodAllocation]:
    for known in lost_assignments_without_pod(assignments.assigned, pods):
        pod = Pod(name=known.pod.name, uid=known.pod.kubelet_uid)
        yield replace(_with_seen(pod, known, assignments), orphaned=True, recorded=known.recorded)


def lost_assignments_without_pod(assigned: AssignedDevices, pods: Pods) -> list[PodAllocation]:
    """Returns those of ``assigned.lost`` that the API server does not know, such as static pods, and
    those that were deleted by force and whose name another pod has there by now."""
    return [
        each
        for name, each in assigned.lost.items()
        if not is_known(assigned.pods[name], pods) or not each.is_of(pods[name])
    ]


def _with_seen(pod: Pod, lost: PodAllocation, assignments: NodeAssignments) -> PodAllocation:
    """Returns ``lost`` beside what the kubelet has of the other containers of ``pod``.

    It admits ordinary init containers once more that have ended: they lend their units to those that run.
    """
    assignment, stored = assignments.assigned.pods[pod.name], assignments.assigned.stored_of(pod)
    seen = _seen_allocation(pod, assignment, assignments)
    listed = {name: entry for name, entry in stored.items() if name in assignment.containers}
    own = _kept_allocation(pod, assignment, listed, assignments.layout)
    running = sum_shares({"lost": lost.cards, "own": own.cards})
    cards = {card: max(running.get(card, 0), seen.cards.get(card, 0)) for card in {**running, **seen.cards}}
    containers = {**lost.containers, **seen.containers}
    return PodAllocation(pod, containers, cards, classes={**lost.classes, **seen.classes})


def _seen_allocation(pod: Pod, assignment: PodAssignment, assignments: NodeAssignments) -> PodAllocation:
    """Returns what the kubelet has of ``pod``, whatever it asks for."""
    return _kept_allocation(pod, assignment, assignments.assigned.stored_of(pod), assignments.layout)


def _kept_allocation(
    pod: Pod, assignment: PodAssignment, stored: StoredContainers, layout: Layout
) -> PodAllocation:
    if stored:
        own = _stored_allocation(pod, [entry for entry in stored.values() if entry.numbers], layout)
    else:
        shares = {name: layout.shares(numbers) for name, numbers in assignment.containers.items() if numbers}
        classes = locks_of_units(layout, assignment.containers.values())
        own = PodAllocation(pod, shares, sum_shares(shares), classes=classes)
    return _with_foreign(own, assignment.foreign, layout) if assignment.foreign else own


def _with_foreign(own: PodAllocation, foreign: ForeignContainers, layout: Layout) -> PodAllocation:
    of_containers = {name: foreign_shares(units, layout) for name, units in foreign.items()}
    containers = {
        name: sum_shares({"own": own.containers.get(name, {}), "foreign": of_containers.get(name, {})})
        for name in (*own.containers, *of_containers)
    }
    every = [*chain.from_iterable(foreign.values())]
    cards = sum_shares({"own": own.cards, "foreign": foreign_shares(every, layout)})
    classes = {**foreign_classes(every, layout), **own.classes}
    return replace(own, containers=containers, cards=cards, classes=classes)


def lost_allocations(assignments: NodeAssignments, pods: Iterable[Pod]) -> list[PodAllocation]:
    """Returns what pods have of which the kubelet forgot units: as it listed them, else by annotation."""
    return [each for pod in pods if (each := _lost_allocation(pod, assignments))]


def _lost_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    names = lost_containers(pod, assignments.assigned)
    if not names:
        return None
    lost, whole = assignments.assigned.lost_of(pod), _annotated_allocation(pod, assignments.node)
    if lost:
        beside = whole.of_containers(set(names) - lost.containers.keys()) if whole else lost
        return _with_seen(pod, _joined(lost, beside), assignments)
    if whole is None:
        return None
    has_units = assignments.assigned.has_units(pod)
    return _with_seen(pod, whole.of_containers(names) if has_units else whole, assignments)


def _annotated_allocation(pod: Pod, node: str) -> PodAllocation | None:
    told = pod.allocation
    if told is None or told.node != node:
        return None
    return PodAllocation(pod, told.containers, told.held(), classes=annotated_classes(told))


def _joined(one: PodAllocation, beside: PodAllocation) -> PodAllocation:
    """Returns ``one`` with containers that ``beside`` alone knows: they run side by side."""
    if beside is one or not beside.containers:
        return one
    cards = sum_shares({"one": one.cards, "beside": beside.cards})
    containers = {**one.containers, **beside.containers}
    return replace(one, containers=containers, cards=cards, classes={**beside.classes, **one.classes})


def annotated_classes(allocation: Allocation) -> dict[str, ResourceClass]:
    """Returns card UUID -> what ``allocation`` says that the pod has of it."""
    units = {card: readable_unit(allocation.unit_of(card)) for card in allocation.held()}
    return {card: unit.resource if unit else allocation.resource for card, unit in units.items()}


def lost_containers(pod: Pod, assigned: AssignedDevices) -> list[str]:
    """Returns the containers of ``pod`` that run, ask for units, and are listed without any.

    The kubelet has lost its checkpoint; it asks again only for a container that restarts. One that has no
    part in what is annotated asks for what its node does not offer: a kubelet admits that, and never had it.
    What was listed last may be of a pod with a part of its units: the annotation tells of the others.
    """
    lost = assigned.lost_of(pod)
    without = containers_without_units(pod, assigned) if pod.running else []
    if lost is None and not without:
        return []
    known = lost.containers if lost else {}
    promised = pod.allocation.containers if pod.allocation else known if lost else None
    told = {*known, *(name for name in without if promised is None or name in promised)}
    return [name for name in assigned.pods[pod.name].containers if name in told] if told else []


def containers_without_units(pod: Pod, assigned: AssignedDevices) -> list[str]:
    """Returns the containers of ``pod`` that are listed without the units that they ask for.

    Ordinary init containers are never listed; they have ended when a pod runs.
    """
    assignment, stored = assigned.of(pod), assigned.stored_of(pod)
    if assignment is None or pod.request is None:
        return []
    asking, init = pod.request.containers, pod.request.init_containers
    return [name for name in asking if not assignment.has(name) and name not in stored and name not in init]


def lost_units(
    assignments: NodeAssignments, pods: Pods, *, but_of: Mapping[str, Shares] = MappingProxyType({})
) -> dict[str, int]:
    """Returns card UUID -> units that running containers have there although the kubelet calls them free: 0
    where it has as many of the same pod. An annotation may name other cards for a container than for its pod:
    then those of the container count.

    ``but_of``: UIDs of pods for a container of one of which the kubelet asks, and not known which, with what
    the others of its containers run with: what the pod has beyond that is there for the container. So is what
    another pod had that was deleted by force and whose name it has: a kubelet lets go of that one first.
    """
    units: Counter[str] = Counter()
    own: dict[str, Mapping[str, int]] = {uid: {} for uid in but_of}
    known = (
        *lost_allocations(assignments, pods.values()),
        *_of_lost_inits(assignments, pods.values()),
    )
    for lost_orphan in (*known, *_lost_orphans(assignments, pods)):
        lacking = _lacking_units(lost_orphan, assignments)
        units.update(lacking)
        if (uid := _present_uid(lost_orphan, pods)) in own:
            own[uid] = _beyond(lacking, but_of[uid])
    return {card: count - _least(own.values(), card) for card, count in units.items()}


def _lacking_units(known: PodAllocation, assignments: NodeAssignments) -> dict[str, int]:
    """Returns card UUID -> units that a pod has there beyond those that the kubelet has of it."""
    seen = _seen_allocation(known.pod, assignments.assigned.pods[known.pod.name], assignments)
    lacking = {name: shares for name, shares in known.containers.items() if name not in seen.containers}
    shares = sum_shares(lacking).items()
    return {card: known.cards.get(card, own) - seen.cards.get(card, 0) for card, own in shares}


def _present_uid(known: PodAllocation, pods: Pods) -> str:
    """Returns the UID of the pod that has the name in the API server, in place of an orphan's."""
    named = pods.get(known.pod.name) if known.orphaned else known.pod
    return named.uid if named else known.pod.uid


def _beyond(shares: Shares, others: Shares) -> Shares:
    return {card: max(0, units - others.get(card, 0)) for card, units in shares.items()}


def _least(shares: Iterable[Mapping[str, int]], card: str) -> int:
    return min((share.get(card, 0) for share in shares), default=0)


def _of_lost_inits(assignments: NodeAssignments, pods: Iterable[Pod]) -> Iterator[PodAllocation]:
    """Yields what the pods have of which an ordinary init container may run that the kubelet has lost:
    the checkpoint would have its units as long as the pod is there. Not those of a pod that the kubelet is
    admitting for the first time: it gives them as it goes on."""
    assigned = assignments.assigned
    if assigned.checkpoint_problem:
        return
    starting = [pod for pod in pods if pod.started and not pod.running]
    yield from admitted_allocations(assignments, [pod for pod in starting if _lacks_inits(pod, assigned)])


def _lacks_inits(pod: Pod, assigned: AssignedDevices) -> bool:
    """Whether the checkpoint lacks an ordinary init container of ``pod`` that asks for units."""
    asking = pod.request.init_containers.intersection(pod.request.containers) if pod.request else ()
    return not assigned.stored_of(pod).keys() >= {*asking}


def admitted_allocations(assignments: NodeAssignments, pods: Iterable[Pod]) -> Iterator[PodAllocation]:
    """Yields the allocation of each of ``pods`` that was admitted and has units."""
    return (each for pod in pods if (each := _admitted_allocation(pod, assignments)))


def _admitted_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    allocation = pod_allocation(pod, assignments)
    is_told = allocation is not None and allocation.cards and not assignments.assigned.lost_of(pod)
    return allocation if is_told else None


def pod_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    """Returns what ``pod`` has, or None while it is not admitted completely.

    The kubelet keeps the units of ordinary init containers until the pod ends, but PodResources do not show
    them. Where the checkpoint does not either, their card is the one where the pod's other units are; failing
    that the card that was preferred, or the annotated one. Of cards that nobody knows nothing is told.
    """
    assignment, request = assignments.assigned.of(pod), pod.request
    if assignment is None or request is None or not request.resources:
        return None
    is_served = len(request.resources) == 1 or assignments.layout.is_mixed
    # Of another pod of its name units are listed, too.
    is_alone = all(name in request.containers for name, each in assignment.containers.items() if each)
    if request.crowded_containers or not (is_served and is_alone) or assignment.foreign:
        is_forgotten = _lost_allocation(pod, assignments) is not None
        has_units = assignments.assigned.has_units(pod) and not is_forgotten
        return _seen_allocation(pod, assignment, assignments) if has_units else None
    parts = [_part_allocation(pod, part, assignment, assignments) for part in request.parts]
    if len(parts) == 1 or None in parts:
        return parts[0] if len(parts) == 1 else None
    return _together(pod, [part for part in parts if part])


def _together(pod: Pod, parts: Sequence[PodAllocation]) -> PodAllocation:
    """The cards of two classes are never the same."""
    containers = {name: shares for part in parts for name, shares in part.containers.items()}
    cards = {card: units for part in parts for card, units in part.cards.items()}
    classes = {card: resource for part in parts for card, resource in part.classes.items()}
    return PodAllocation(pod, containers, cards, classes=classes)


def _part_allocation(
    pod: Pod, request: PodRequest, assignment: PodAssignment, assignments: NodeAssignments
) -> PodAllocation | None:
    """Returns what ``pod`` has of the single resource of ``request``."""
    found = _found_allocation(pod, request, assignment, assignments)
    (asked,) = request.resources
    return replace(found, classes=dict.fromkeys(found.cards, asked.resource)) if found else None


def _found_allocation(
    pod: Pod, request: PodRequest, assignment: PodAssignment, assignments: NodeAssignments
) -> PodAllocation | None:
    stored = assignments.assigned.stored_of(pod)
    if all(stored.get(name) for name in request.containers):
        return _stored_allocation(pod, [stored[name] for name in request.containers], assignments.layout)
    running = request.running_containers
    if not all(assignment.containers.get(name) for name in running):
        return None
    containers = {name: _shares(assignment, name, stored, assignments.layout) for name in running}
    return _with_init_containers(pod, request, containers, assignments)


def _stored_allocation(pod: Pod, entries: Sequence[CheckpointEntry], layout: Layout) -> PodAllocation:
    """Containers that run one after the other share units: the pod holds each of them once."""
    containers = {entry.container: _stored_shares(entry, entry.numbers, layout) for entry in entries}
    classes = {card: entry.resource for entry in entries for card in containers[entry.container]}
    if len(entries) == 1:
        return PodAllocation(pod, containers, sum_shares(containers), classes=classes)
    counted: set[int] = set()
    cards: Counter[str] = Counter()
    for entry in entries:
        cards.update(_stored_shares(entry, array("I", set(entry.numbers) - counted), layout))
        counted.update(entry.numbers)
    return PodAllocation(pod, containers, dict(cards), classes=classes)


def _stored_shares(entry: CheckpointEntry, numbers: "array[int]", layout: Layout) -> dict[str, int]:
    """The card is the one that the container sees, whatever the layout says now."""
    if entry.cards and numbers:
        return {card: units for card, units in entry.shares(numbers).items() if units}
    return layout.shares(numbers)


def _shares(
    assignment: PodAssignment, container: str, stored: StoredContainers, layout: Layout
) -> dict[str, int]:
    """Returns the cards of one container that PodResources show."""
    numbers, entry = assignment.containers[container], stored.get(container)
    return _stored_shares(entry, numbers, layout) if entry else layout.shares(numbers)


def _with_init_containers(
    pod: Pod, request: PodRequest, containers: dict[str, dict[str, int]], assignments: NodeAssignments
) -> PodAllocation | None:
    cards = sum_shares(containers)
    init = {name: units for name, units in request.containers.items() if name in request.init_containers}
    if not init:
        return PodAllocation(pod, containers, cards)
    (asked,) = request.resources
    mode = mode_serving(asked.resource)
    held = mode.on_cards(request.total)
    likely = _likely_cards(pod, asked.resource, cards, assignments)[: held.cards]
    if not likely:
        return None
    beyond = max(0, request.total - sum(cards.values()))
    for card in likely:
        added = max(0, min(beyond, held.units - cards.get(card, 0)))
        cards[card] = cards.get(card, 0) + added
        beyond -= added
    shares = {name: mode.on_cards(units) for name, units in init.items()}
    lent = {name: dict.fromkeys(likely[: each.cards], each.units) for name, each in shares.items()}
    return PodAllocation(pod, {**lent, **containers}, cards)


def _likely_cards(
    pod: Pod, resource: ResourceClass, seen: Iterable[str], assignments: NodeAssignments
) -> list[str]:
    """Returns the cards on which units of ``pod`` can lie that are not shown, the likeliest first."""
    preferred = assignments.preferred.get(pod.uid)
    named = preferred.cards_of(resource) if preferred else ()
    annotated = annotated_cards_of(pod, resource) if assignments.layout.is_mixed else pod.annotated_cards
    return [*dict.fromkeys([*seen, *named, *annotated])]


def annotated_cards_of(pod: Pod, resource: ResourceClass) -> tuple[str, ...]:
    """Returns the cards that the pod was promised of one class."""
    classes = annotated_classes(pod.allocation) if pod.allocation else {}
    return tuple(card for card, each in classes.items() if each is resource)


def is_known(assignment: PodAssignment, pods: Pods) -> bool:
    """Whether the API server has this very pod (as far as its UID was found out)."""
    pod = pods.get(assignment.name)
    return pod is not None and assignment.uid in ("", pod.kubelet_uid)


def every_allocation(assignments: NodeAssignments, pods: Pods) -> list[PodAllocation]:
    """Returns what all pods have, each once, also those that only the kubelet knows, or that it has
    lost. No pod is left out of which the kubelet shows units."""
    return with_orphans([allocations_of(pod, assignments) for pod in pods.values()], assignments, pods)


class PodAllocations(NamedTuple):
    """What one pod of the API server's has; all None of one that has nothing."""

    admitted: PodAllocation | None = None
    shown: PodAllocation | None = None
    """What the kubelet shows of a pod of which it cannot be told whether that is all."""
    lost: PodAllocation | None = None


def allocations_of(pod: Pod, assignments: NodeAssignments) -> PodAllocations:
    """Returns what ``pod`` has. That follows from its ``PodSnapshot`` alone."""
    admitted, lost = _admitted_allocation(pod, assignments), _lost_allocation(pod, assignments)
    shown = None if admitted or lost else _shown_allocation(pod, assignments)
    return PodAllocations(admitted, shown, lost)


def with_orphans(
    of_pods: Sequence[PodAllocations], assignments: NodeAssignments, pods: Pods
) -> list[PodAllocation]:
    """Returns what ``every_allocation`` does, by what was found of each of ``pods``."""
    admitted = (of_pod.admitted for of_pod in of_pods if of_pod.admitted)
    shown = (of_pod.shown for of_pod in of_pods if of_pod.shown)
    lost = (of_pod.lost for of_pod in of_pods if of_pod.lost)
    return [*admitted, *shown, *orphaned_allocations(assignments, pods), *lost]


def _shown_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    """Returns what the kubelet shows of ``pod``, of which it cannot be told whether that is all.

    What it asks for was not read yet, or it is not admitted completely.
    """
    assignment = assignments.assigned.of(pod)
    if assignment is None or not assignments.assigned.has_units(pod):
        return None
    allocation = _seen_allocation(pod, assignment, assignments)
    return allocation if allocation.cards else None


def node_locks(
    assignments: NodeAssignments, pods: Pods, allocations: Iterable[PodAllocation]
) -> dict[str, ResourceClass]:
    """Returns the class that each card serves of which the kubelet has assigned units, or pods have them by
    ``allocations``: where the kubelet does not show them, or has lost them."""
    if not assignments.layout.is_mixed:
        return {}
    locks = locks_of_units(assignments.layout, assignments.assigned.holdings())
    told = (allocation.classes for allocation in allocations)
    for classes in (*told, *_unlisted_classes(assignments, pods), assignments.recorded):
        for card, resource in classes.items():
            locks.setdefault(card, resource)
    return locks


def _unlisted_classes(assignments: NodeAssignments, pods: Pods) -> Iterator[Mapping[str, ResourceClass]]:
    """Yields what pods have that were admitted and are not listed.

    A kubelet that was restarted lists its pods one after the other, and one that was bound meanwhile can be
    before them; or PodResources are silent. Of their own class it keeps their units itself.
    """
    unlisted = [pod for pod in pods.values() if assignments.assigned.of(pod) is None]
    yield answered_classes(unlisted, assignments)
    for pod in unlisted:
        allocation = pod.allocation if pod.started else None
        if allocation and allocation.node == assignments.node and pod.uid not in assignments.preferred:
            yield annotated_classes(allocation)


def answered_classes(pods: Iterable[Pod], assignments: NodeAssignments) -> dict[str, ResourceClass]:
    """Returns what was answered of cards for pods of which the kubelet has not shown units yet."""
    answered = (assignments.preferred.get(pod.uid) for pod in pods if not assignments.assigned.has_units(pod))
    return {card: resource for each in answered if each for card, resource in each.classes.items()}
