"""What pods have: the units that the kubelet assigned to them, and the cards that follow from these.

The assignment is read from PodResources and, where it can be read, from the kubelet's checkpoint, which knows
UIDs, ordinary init containers, and the card that each container was given.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce
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
    """Yields what pods have that the API server does not know (any more)."""
    assigned = assignments.assigned
    for assignment in orphans(assigned, pods):
        pod = Pod(name=assignment.name, uid=assignment.uid)
        has_name = assigned.pods.get(assignment.name) is assignment
        if not (has_name and assignment.name in assigned.lost):
            yield replace(_seen_allocation(pod, assignment, assignments), orphaned=True)
    yield from _lost_orphans(assignments, pods)


def _lost_orphans(assignments: NodeAssignments, pods: Pods) -> Iterator[PodAllocation]:
    for known in lost_assignments_without_pod(assignments.assigned, pods):
        # A record may name a former mirror, of which the checkpoint knows nothing.
        listed = assignments.assigned.pods[known.pod.name].uid if known.recorded else ""
        pod = Pod(name=known.pod.name, uid=listed or known.pod.kubelet_uid)
        yield replace(_with_seen(pod, known, assignments), orphaned=True, recorded=known.recorded)


def lost_assignments_without_pod(assigned: AssignedDevices, pods: Pods) -> list[PodAllocation]:
    """Returns the lost assignments whose pod the API server does not know: of static pods, and of pods that
    were deleted by force and whose name another pod has by now."""
    return [
        known
        for name, known in assigned.lost.items()
        if not is_known(assigned.pods[name], pods) or not known.is_of(pods[name])
    ]


def _with_seen(pod: Pod, lost: PodAllocation, assignments: NodeAssignments) -> PodAllocation:
    """Returns the units ``lost`` of ``pod`` beside those that the kubelet has of its other containers.

    The kubelet admits ordinary init containers once more that have ended: they lend units to those that run.
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
    """Returns what pods have whose units the kubelet lost: as it listed them before, else as annotated."""
    return [lost for pod in pods if (lost := _lost_allocation(pod, assignments))]


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
    annotated = pod.allocation
    if annotated is None or annotated.node != node:
        return None
    return PodAllocation(pod, annotated.containers, annotated.held(), classes=annotated_classes(annotated))


def _joined(one: PodAllocation, beside: PodAllocation) -> PodAllocation:
    """Returns ``one`` with the containers that only ``beside`` knows: they run side by side."""
    if beside is one or not beside.containers:
        return one
    cards = sum_shares({"one": one.cards, "beside": beside.cards})
    containers = {**one.containers, **beside.containers}
    return replace(one, containers=containers, cards=cards, classes={**beside.classes, **one.classes})


def annotated_classes(allocation: Allocation) -> dict[str, ResourceClass]:
    """Returns card UUID -> class of the pod's units there, by ``allocation``."""
    units = {card: readable_unit(allocation.unit_of(card)) for card in allocation.held()}
    return {card: unit.resource if unit else allocation.resource for card, unit in units.items()}


def lost_containers(pod: Pod, assigned: AssignedDevices) -> list[str]:
    """Returns the containers of ``pod`` that run, ask for units, and are listed without any.

    A kubelet that lost its checkpoint asks again only for a container that restarts. A container that the
    annotation does not name never had units: it asks for what its node does not offer, and a kubelet admits
    that. Where a part of the pod's units was listed last, the annotation names the others.
    """
    lost = assigned.lost_of(pod)
    without = containers_without_units(pod, assigned) if pod.running else []
    if lost is None and not without:
        return []
    known = lost.containers if lost else {}
    promised = pod.allocation.containers if pod.allocation else known if lost else None
    lacking = {*known, *(name for name in without if promised is None or name in promised)}
    return [name for name in assigned.pods[pod.name].containers if name in lacking] if lacking else []


def containers_without_units(pod: Pod, assigned: AssignedDevices) -> list[str]:
    """Returns the containers of ``pod`` that are listed without the units that they ask for. Ordinary init
    containers are never listed; they have ended when a pod runs."""
    assignment, stored = assigned.of(pod), assigned.stored_of(pod)
    if assignment is None or pod.request is None:
        return []
    asking, init = pod.request.containers, pod.request.init_containers
    return [name for name in asking if not assignment.has(name) and name not in stored and name not in init]


def lost_units(
    assignments: NodeAssignments, pods: Pods, *, candidates: Mapping[str, Shares] = MappingProxyType({})
) -> dict[str, int]:
    """Returns card UUID -> units with which containers run there although the kubelet calls them free.

    It is 0 where the kubelet has as many of the same pod. Where an annotation names other cards for a
    container than for its pod, those of the container count.

    ``candidates``: UIDs of the pods that the kubelet may be asking for, with what their other containers run
    with. What such a pod lost beyond that is free for the container in question. So are the units of a pod
    that was deleted by force and whose name the candidate has: a kubelet lets go of that pod first.
    """
    units: Counter[str] = Counter()
    own: dict[str, Mapping[str, int]] = {uid: {} for uid in candidates}
    of_pods = lost_allocations(assignments, pods.values())
    inits = _of_lost_inits(assignments, pods.values())
    for known in (*of_pods, *inits, *_lost_orphans(assignments, pods)):
        lacking = _lacking_units(known, assignments)
        units.update(lacking)
        # What an orphan lost counts for the pod that has its name now.
        named = pods.get(known.pod.name) if known.orphaned else None
        if (uid := (named or known.pod).uid) in own:
            beside = candidates[uid]
            own[uid] = {card: max(0, count - beside.get(card, 0)) for card, count in lacking.items()}
    free = {card: min((shares.get(card, 0) for shares in own.values()), default=0) for card in units}
    return {card: count - free[card] for card, count in units.items()}


def _lacking_units(known: PodAllocation, assignments: NodeAssignments) -> dict[str, int]:
    """Returns card UUID -> units that a pod has there beyond those that the kubelet has of it."""
    seen = _seen_allocation(known.pod, assignments.assigned.pods[known.pod.name], assignments)
    lacking = {name: shares for name, shares in known.containers.items() if name not in seen.containers}
    shares = sum_shares(lacking).items()
    return {card: known.cards.get(card, own) - seen.cards.get(card, 0) for card, own in shares}


def _of_lost_inits(assignments: NodeAssignments, pods: Iterable[Pod]) -> Iterator[PodAllocation]:
    """Yields what pods have of which an ordinary init container may run whose units the kubelet lost.

    The checkpoint would have its units as long as the pod is there. A pod that the kubelet admits for the
    first time is left out: it gets its units one container after the other.
    """
    assigned = assignments.assigned
    if assigned.checkpoint_problem:
        return
    for pod in pods:
        if pod.request and pod.started and not pod.running:
            asking = pod.request.init_containers.intersection(pod.request.containers)
            if not assigned.stored_of(pod).keys() >= asking:
                yield from admitted_allocations(assignments, [pod])


def admitted_allocations(assignments: NodeAssignments, pods: Iterable[Pod]) -> Iterator[PodAllocation]:
    return (held for pod in pods if (held := _admitted_allocation(pod, assignments)))


def _admitted_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    allocation = pod_allocation(pod, assignments)
    has_all = allocation and allocation.cards and not assignments.assigned.lost_of(pod)
    return allocation if has_all else None


def pod_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    """Returns what ``pod`` has, or None while it is not admitted completely.

    The kubelet keeps the units of ordinary init containers until the pod ends, or its checkpoint is lost, but
    PodResources do not list them. Their card is the first that is known of these: 1. the card in the
    checkpoint; 2. the card of the pod's other units; 3. the card that was preferred; 4. the annotated card.
    """
    assignment, request = assignments.assigned.of(pod), pod.request
    if assignment is None or request is None or not request.resources:
        return None
    is_served = len(request.resources) == 1 or assignments.layout.is_mixed
    # Of another pod of its name units are listed, too.
    is_alone = all(name in request.containers for name, numbers in assignment.containers.items() if numbers)
    if request.crowded_containers or not (is_served and is_alone) or assignment.foreign:
        is_lost = _lost_allocation(pod, assignments) is not None
        has_units = assignments.assigned.has_units(pod) and not is_lost
        return _seen_allocation(pod, assignment, assignments) if has_units else None
    parts = [_part_allocation(pod, part, assignment, assignments) for part in request.parts]
    found = [part for part in parts if part]
    return reduce(_joined, found) if len(found) == len(parts) else None


def _part_allocation(
    pod: Pod, request: PodRequest, assignment: PodAssignment, assignments: NodeAssignments
) -> PodAllocation | None:
    found = _found_allocation(pod, request, assignment, assignments)
    (asked,) = request.resources
    return replace(found, classes=dict.fromkeys(found.cards, asked.resource)) if found else None


def _found_allocation(
    pod: Pod, request: PodRequest, assignment: PodAssignment, assignments: NodeAssignments
) -> PodAllocation | None:
    stored = assignments.assigned.stored_of(pod)
    entries = [stored[name] for name in request.containers if stored.get(name)]
    if len(entries) == len(request.containers) or has_lost_ended_inits(pod, stored):
        return _stored_allocation(pod, entries, assignments.layout)
    running = request.running_containers
    if not all(assignment.containers.get(name) for name in running):
        return None
    layout, numbers = assignments.layout, assignment.containers
    containers = {name: _stored_shares(stored.get(name), numbers[name], layout) for name in running}
    return _with_init_containers(pod, request, containers, assignments)


def has_lost_ended_inits(pod: Pod, stored: StoredContainers) -> bool:
    """Whether the kubelet lost the units of those ordinary init containers of ``pod`` that ``stored`` lacks:
    nobody has them, as these containers have ended.

    The kubelet stores their units before those of the other containers. It has only these where it lost its
    checkpoint and all of the other containers have restarted since.
    """
    running = pod.request.running_containers if pod.request else {}
    return pod.running and bool(running) and all(stored.get(name) for name in running)


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


def _stored_shares(entry: CheckpointEntry | None, numbers: "array[int]", layout: Layout) -> dict[str, int]:
    """The card is the one that the container sees, whatever the layout says now."""
    if entry and entry.cards and numbers:
        return {card: units for card, units in entry.shares(numbers).items() if units}
    return layout.shares(numbers)


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
    lent = {name: dict.fromkeys(likely[: amount.cards], amount.units) for name, amount in shares.items()}
    return PodAllocation(pod, {**lent, **containers}, cards)


def _likely_cards(
    pod: Pod, resource: ResourceClass, seen: Iterable[str], assignments: NodeAssignments
) -> list[str]:
    """Returns the cards on which unlisted units of ``pod`` can lie, the likeliest first."""
    preferred = assignments.preferred.get(pod.uid)
    named = preferred.cards_of(resource) if preferred else ()
    annotated = annotated_cards_of(pod, resource) if assignments.layout.is_mixed else pod.annotated_cards
    return [*dict.fromkeys([*seen, *named, *annotated])]


def annotated_cards_of(pod: Pod, resource: ResourceClass) -> tuple[str, ...]:
    classes = annotated_classes(pod.allocation) if pod.allocation else {}
    return tuple(card for card, served in classes.items() if served is resource)


def is_known(assignment: PodAssignment, pods: Pods) -> bool:
    """Whether the API server has this very pod (as far as its UID was found out)."""
    pod = pods.get(assignment.name)
    return pod is not None and assignment.uid in ("", pod.kubelet_uid)


def every_allocation(assignments: NodeAssignments, pods: Pods) -> list[PodAllocation]:
    """Returns what all pods have, each once, also what only the kubelet knows and what it lost. Every pod of
    which the kubelet lists units is among them."""
    return with_orphans([allocations_of(pod, assignments) for pod in pods.values()], assignments, pods)


class PodAllocations(NamedTuple):
    """What one pod of the API server's has; all None where it has nothing."""

    admitted: PodAllocation | None = None
    shown: PodAllocation | None = None
    """What the kubelet lists of a pod while it is unknown whether that is all."""
    lost: PodAllocation | None = None


def allocations_of(pod: Pod, assignments: NodeAssignments) -> PodAllocations:
    """Returns what ``pod`` has. That follows from its ``PodSnapshot`` alone."""
    admitted, lost = _admitted_allocation(pod, assignments), _lost_allocation(pod, assignments)
    shown = None if admitted or lost else _shown_allocation(pod, assignments)
    return PodAllocations(admitted, shown, lost)


def with_orphans(
    of_pods: Sequence[PodAllocations], assignments: NodeAssignments, pods: Pods
) -> list[PodAllocation]:
    admitted = (held.admitted for held in of_pods if held.admitted)
    shown = (held.shown for held in of_pods if held.shown)
    lost = (held.lost for held in of_pods if held.lost)
    return [*admitted, *shown, *orphaned_allocations(assignments, pods), *lost]


def _shown_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    """Returns what the kubelet lists of ``pod`` while it is unknown whether that is all: what the pod asks
    for was not read yet, or it is not admitted completely."""
    assignment = assignments.assigned.of(pod)
    if assignment is None or not assignments.assigned.has_units(pod):
        return None
    allocation = _seen_allocation(pod, assignment, assignments)
    return allocation if allocation.cards else None


def node_locks(
    assignments: NodeAssignments, pods: Pods, allocations: Iterable[PodAllocation]
) -> dict[str, ResourceClass]:
    """Returns the class that each card in use serves: by the units that the kubelet has assigned, and by
    ``allocations``, which know of units that the kubelet does not list or has lost."""
    if not assignments.layout.is_mixed:
        return {}
    locks = locks_of_units(assignments.layout, assignments.assigned.holdings())
    by_allocation = (allocation.classes for allocation in allocations)
    for classes in (*by_allocation, *_unlisted_classes(assignments, pods), assignments.recorded):
        for card, resource in classes.items():
            locks.setdefault(card, resource)
    return locks


def _unlisted_classes(assignments: NodeAssignments, pods: Pods) -> Iterator[Mapping[str, ResourceClass]]:
    """Yields the classes of what pods have that were admitted and are not listed.

    A restarted kubelet lists its pods one after the other, and one that was bound meanwhile can come first;
    or PodResources do not answer. From pods of the same class the kubelet itself keeps their units.
    """
    unlisted = [pod for pod in pods.values() if assignments.assigned.of(pod) is None]
    yield answered_classes(unlisted, assignments)
    for pod in unlisted:
        allocation = pod.allocation if pod.started else None
        if allocation and allocation.node == assignments.node and pod.uid not in assignments.preferred:
            yield annotated_classes(allocation)


def answered_classes(pods: Iterable[Pod], assignments: NodeAssignments) -> dict[str, ResourceClass]:
    """Returns card UUID -> class, as preferred for pods of which the kubelet lists no units yet."""
    answered = (assignments.preferred.get(pod.uid) for pod in pods if not assignments.assigned.has_units(pod))
    return {card: resource for cards in answered if cards for card, resource in cards.classes.items()}
