"""Repairs of annotations that do not say what the kubelet has assigned: the kubelet is right.

Our own, and beside it what the dialect of the node says of a pod that has its units.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.dialects.annotation_room import lack_of_room, size_of
from gpushare_core.dialects.codec import shares_of_class
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.grants import CardPlace
from gpushare_core.placement.requests import ResourceClass
from gpushare_core.placement.units import Unit, readable_unit
from gpushare_plugin.decide.admit.card_reason import KEPT_BY_KUBELET
from gpushare_plugin.decide.held.allocations import (
    admitted_allocations,
    containers_without_units,
    lost_allocations,
    lost_containers,
)
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices, NodeAssignments
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.held.pods import Pod, PodName
from gpushare_plugin.decide.memo import Memo
from gpushare_plugin.decide.units.layout import Layout

ANNOTATIONS_FULL, OTHER_CARD = "AnnotationsFull", "OtherCardThanAnnotated"
"""Reasons of Events."""


@dataclass(frozen=True, slots=True)
class Repair:
    """Set annotations of one pod."""

    pod: PodName
    uid: str
    annotations: Mapping[str, str]
    obstacle: str = ""
    """Why it is of no use to write them; empty where nothing is known against it."""
    other_card: str = ""
    """For people: which card the pod has in place of the annotated one, and why; empty where it has that."""


@dataclass(slots=True)
class RepairPlanner:
    """Plans repairs. A pod that needed none is looked at again when something of it has changed."""

    _settled: Memo[list[Repair]] = field(default_factory=Memo)

    def plan(
        self, assignments: NodeAssignments, pods: Iterable[Pod], dialect: Dialect, *, now: datetime
    ) -> list[Repair]:
        """Returns what ``plan_repairs`` does. The time is in repairs alone: these are planned anew."""
        repairs = self._settled.values(
            {pod.name: (assignments.of_pod(pod), dialect) for pod in pods},
            lambda known: plan_repairs(assignments, [known[0].pod], dialect, now=now),
            keep=operator.not_,
        )
        return [*chain.from_iterable(repairs)]


def plan_repairs(
    assignments: NodeAssignments, pods: Iterable[Pod], dialect: Dialect, *, now: datetime
) -> list[Repair]:
    """Returns one for each pod that was admitted and whose annotations are missing or say otherwise.

    Of what the kubelet has forgotten it told more than an annotation that was not set right yet; but where it
    went in the middle of an admission the annotation alone tells of the other containers.
    """
    return [
        Repair(
            held.pod.name,
            held.pod.uid,
            annotations,
            obstacle=_obstacle(held.pod, annotations),
            other_card=_other_card(held, assignments),
        )
        for pod in pods
        for held in _certain_allocations(pod, assignments)
        if (annotations := _repaired(held, assignments, dialect, now))
    ]


def _obstacle(pod: Pod, annotations: Mapping[str, str]) -> str:
    """The API server refuses annotations of more than their limit, whoever writes them."""
    return lack_of_room(pod.others_size, size_of({**pod.annotations, **annotations}))


def full_pod_events(repairs: Iterable[Repair]) -> list[PodEvent]:
    """Returns what pods are to be told whose annotations cannot be set right: each of them once."""
    return [
        PodEvent(
            pod=repair.pod,
            uid=repair.uid,
            reason=ANNOTATIONS_FULL,
            note=f"which cards this pod has cannot be written on it: {repair.obstacle}",
            warning=True,
            action="Annotating",
            occasion=ANNOTATIONS_FULL,
        )
        for repair in repairs
        if repair.obstacle
    ]


def other_card_events(repairs: Iterable[Repair]) -> list[PodEvent]:
    """Returns what pods are to be told that have another card than the annotated one."""
    return [
        PodEvent(
            pod=repair.pod,
            uid=repair.uid,
            reason=OTHER_CARD,
            note=repair.other_card,
            action="Annotating",
            occasion=repair.other_card,
        )
        for repair in repairs
        if repair.other_card
    ]


def _other_card(held: PodAllocation, assignments: NodeAssignments) -> str:
    annotated = held.pod.allocation
    if annotated is None or annotated.node != assignments.node:
        return ""
    if held.cards.keys() <= annotated.held().keys():
        return ""
    preferred = assignments.preferred.get(held.pod.uid)
    reason = (preferred and preferred.reason) or KEPT_BY_KUBELET
    return f"card {', '.join(held.cards)} in place of {', '.join(annotated.held())}: {reason}"


def _certain_allocations(pod: Pod, assignments: NodeAssignments) -> Iterator[PodAllocation]:
    yield from admitted_allocations(assignments, [pod])
    if assignments.assigned.lost_of(pod) and _is_told(pod, assignments.assigned):
        yield from lost_allocations(assignments, [pod])


def _is_told(pod: Pod, assigned: AssignedDevices) -> bool:
    """Whether it is known of every container that lacks units whether it had some."""
    promised = pod.allocation.containers if pod.allocation else {}
    lacking = {name for name in containers_without_units(pod, assigned) if name in promised}
    return lacking <= {*lost_containers(pod, assigned)}


def _repaired(
    held: PodAllocation, assignments: NodeAssignments, dialect: Dialect, now: datetime
) -> dict[str, str]:
    allocation = _allocation(held, assignments, now)
    own = {}
    if not _agrees(held.pod.allocation, held, assignments):
        own[dialect.allocation_annotation] = encode_allocation(allocation)
    return {**own, **_spoken(held, allocation, assignments, dialect, now)}


def _spoken(
    held: PodAllocation,
    allocation: Allocation,
    assignments: NodeAssignments,
    dialect: Dialect,
    now: datetime,
) -> dict[str, str]:
    """Returns the annotations of ``dialect`` to set. A time alone is no reason to write."""
    at, present = int(now.timestamp() * 10**9), held.pod.annotations
    assigned = dialect.codec.assignment_annotations(allocation.resource, at)
    bound = {} if _has_foreign(held, assignments) else _bound(allocation, assignments.layout, dialect, at)
    wanted = {**bound, **assigned}
    times = {key for key, value in wanted.items() if value == str(at)}
    differing = {key for key, value in wanted.items() if key not in times and present.get(key) != value}
    missing = times - present.keys()
    renewed = times & assigned.keys() if differing & assigned.keys() else set()
    return {key: wanted[key] for key in sorted(differing | missing | renewed)}


def _bound(allocation: Allocation, layout: Layout, dialect: Dialect, at: int) -> dict[str, str]:
    """Returns what the extender says at bind; nothing of a pod whose cards the dialect has no words for.

    A dialect speaks of one class: a card is as large, and the pod has what it has, of that class.
    """
    cards = layout.of(allocation.resource).cards
    places = {placed.uuid: CardPlace(placed.card.index, placed.units) for placed in cards}
    held = shares_of_class(allocation)
    is_spread = allocation.resource is ResourceClass.MEMORY and len(held) != 1
    if is_spread or not held.keys() <= places.keys():
        return {}
    return dialect.codec.bind_annotations(allocation, places, at)


def _has_foreign(held: PodAllocation, assignments: NodeAssignments) -> bool:
    """Then the replaced system has written how much it is, in its own units."""
    assignment = assignments.assigned.of(held.pod)
    return bool(assignment and assignment.foreign)


def _agrees(annotated: Allocation | None, held: PodAllocation, assignments: NodeAssignments) -> bool:
    return (
        annotated is not None
        and annotated.node == assignments.node
        and _means_the_same(annotated, held, assignments)
        and annotated.containers == held.containers
        and annotated.held() == held.cards
    )


def _means_the_same(annotated: Allocation, held: PodAllocation, assignments: NodeAssignments) -> bool:
    """Whether it says of each card what its units are."""
    units = _units(held, assignments)
    said = {card: readable_unit(annotated.unit_of(card)) for card in held.cards}
    first = next(iter(units.values()))
    return annotated.resource in {unit.resource for unit in units.values()} and all(
        (unit := said[card]) is not None and unit.meaning == units.get(card, first).meaning
        for card in held.cards
    )


def _units(held: PodAllocation, assignments: NodeAssignments) -> dict[str, Unit]:
    """Returns what one unit of each of the pod's cards is."""
    layout = assignments.layout
    return {card: layout.of(held.classes.get(card, layout.classes[0])).only for card in held.cards}


def _allocation(held: PodAllocation, assignments: NodeAssignments, now: datetime) -> Allocation:
    """What was annotated before and does not follow from the units is kept. Of several classes memory comes
    first, as at bind: dialects speak of it."""
    before = held.pod.allocation
    requested = before or held.pod.request
    units = _units(held, assignments)
    unit = min(units.values(), key=lambda each: each.resource is not ResourceClass.MEMORY)
    return Allocation(
        node=assignments.node,
        uid=held.pod.uid,
        at=before.at if before else rfc3339(now),
        unit=unit.text,
        resource=unit.resource,
        containers={name: dict(shares) for name, shares in held.containers.items()},
        cards=dict(held.cards),
        cpu=requested.cpu if requested else "0",
        memory=requested.memory if requested else "0",
        other_units={card: each.text for card, each in units.items() if each != unit},
    )
