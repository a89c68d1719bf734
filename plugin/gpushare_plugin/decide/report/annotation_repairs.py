"""Repairs of annotations that do not say what the kubelet has assigned: the kubelet is right.

They are the allocation annotation, and those that the node's dialect writes on a pod that has its units.
"""

import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
from gpushare_plugin.decide.admit.preferred_allocation import KEPT_BY_KUBELET
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
    """Why writing them is of no use; empty where nothing is known against it."""
    other_card: str = ""
    """Which card the pod has in place of the annotated one, and why, for people; empty where it has that."""


@dataclass(slots=True)
class RepairPlanner:
    """A pod that needed no repair is looked at again only when something of it has changed."""

    _settled: Memo[list[Repair]] = field(default_factory=Memo)

    def plan(
        self, assignments: NodeAssignments, pods: Iterable[Pod], dialect: Dialect, *, now: datetime
    ) -> list[Repair]:
        """Returns what ``plan_repairs`` does. No repair is remembered: it has the time of ``now``."""
        repairs = self._settled.values(
            {pod.name: (assignments.of_pod(pod), dialect) for pod in pods},
            lambda known: plan_repairs(assignments, [known[0].pod], dialect, now=now),
            keep=operator.not_,
        )
        return [*chain.from_iterable(repairs)]


def plan_repairs(
    assignments: NodeAssignments, pods: Iterable[Pod], dialect: Dialect, *, now: datetime
) -> list[Repair]:
    """Returns a repair for each pod whose annotations differ from what the pod has. What it has:

    1. of a pod that was admitted, what the kubelet lists for it;
    2. of a pod whose units the kubelet has lost, what the kubelet listed before. Such a pod is left alone if
       the kubelet was restarted in the middle of its admission: of the other containers only the annotation
       says what they are to get.
    """
    return [
        Repair(
            held.pod.name,
            held.pod.uid,
            annotations,
            # The API server refuses annotations of more than its limit, whoever has written them.
            obstacle=lack_of_room(held.pod.others_size, size_of({**held.pod.annotations, **annotations})),
            other_card=_other_card(held, assignments),
        )
        for pod in pods
        for held in _certain_allocations(pod, assignments)
        if (annotations := _repaired(held, assignments, dialect, now))
    ]


def full_pod_events(repairs: Iterable[Repair]) -> list[PodEvent]:
    """Returns an Event for each pod whose annotations cannot be set right."""
    note = "gpushare cannot write this pod's cards into its annotations: "
    return [
        replace(_event(repair, ANNOTATIONS_FULL, note + repair.obstacle, ANNOTATIONS_FULL), warning=True)
        for repair in repairs
        if repair.obstacle
    ]


def other_card_events(repairs: Iterable[Repair]) -> list[PodEvent]:
    """Returns an Event for each pod that has another card than the annotated one."""
    return [
        _event(repair, OTHER_CARD, repair.other_card, repair.other_card)
        for repair in repairs
        if repair.other_card
    ]


def _event(repair: Repair, reason: str, note: str, occasion: str) -> PodEvent:
    return PodEvent(
        pod=repair.pod, uid=repair.uid, reason=reason, note=note, action="Annotating", occasion=occasion
    )


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
    if assignments.assigned.lost_of(pod) and _is_complete(pod, assignments.assigned):
        yield from lost_allocations(assignments, [pod])


def _is_complete(pod: Pod, assigned: AssignedDevices) -> bool:
    """Whether every annotated container without units is one whose units the kubelet has lost."""
    annotated = pod.allocation.containers if pod.allocation else {}
    lacking = {name for name in containers_without_units(pod, assigned) if name in annotated}
    return lacking <= {*lost_containers(pod, assigned)}


def _repaired(
    held: PodAllocation, assignments: NodeAssignments, dialect: Dialect, now: datetime
) -> dict[str, str]:
    allocation = _allocation(held, assignments, now)
    own = {}
    if not _agrees(held.pod.allocation, held, assignments):
        own[dialect.allocation_annotation] = encode_allocation(allocation)
    return {**own, **_dialect_annotations(held, allocation, assignments, dialect, now)}


def _dialect_annotations(
    held: PodAllocation,
    allocation: Allocation,
    assignments: NodeAssignments,
    dialect: Dialect,
    now: datetime,
) -> dict[str, str]:
    """Returns the annotations of ``dialect`` to set. Another time alone is no reason to write."""
    at, present = int(now.timestamp() * 10**9), held.pod.annotations
    assigned = dialect.codec.assignment_annotations(allocation.resource, at)
    assignment = assignments.assigned.of(held.pod)
    # The replaced system has annotated its units itself.
    is_replaced = bool(assignment and assignment.foreign)
    bound = {} if is_replaced else _bound(allocation, assignments.layout, dialect, at)
    desired = {**bound, **assigned}
    times = {key for key, value in desired.items() if value == str(at)}
    differing = {key for key, value in desired.items() if key not in times and present.get(key) != value}
    missing = times - present.keys()
    renewed = times & assigned.keys() if differing & assigned.keys() else set()
    return {key: desired[key] for key in sorted(differing | missing | renewed)}


def _bound(allocation: Allocation, layout: Layout, dialect: Dialect, at: int) -> dict[str, str]:
    """Returns what the extender writes at bind; nothing where the dialect has no words for the pod's cards.

    A dialect knows one class of units: cards have their size in it, and the pod what it holds of it.
    """
    cards = layout.of(allocation.resource).cards
    places = {placed.uuid: CardPlace(placed.card.index, placed.units) for placed in cards}
    held = shares_of_class(allocation)
    is_spread = allocation.resource is ResourceClass.MEMORY and len(held) != 1
    if is_spread or not held.keys() <= places.keys():
        return {}
    return dialect.codec.bind_annotations(allocation, places, at)


def _agrees(annotated: Allocation | None, held: PodAllocation, assignments: NodeAssignments) -> bool:
    return (
        annotated is not None
        and annotated.node == assignments.node
        and _means_the_same(annotated, held, assignments)
        and annotated.containers == held.containers
        and annotated.held() == held.cards
    )


def _means_the_same(annotated: Allocation, held: PodAllocation, assignments: NodeAssignments) -> bool:
    """Whether the annotation has the right unit of each card."""
    units = _units(held, assignments)
    annotated_units = ((card, readable_unit(annotated.unit_of(card))) for card in held.cards)
    return annotated.resource in {unit.resource for unit in units.values()} and all(
        unit is not None and unit.meaning == units[card].meaning for card, unit in annotated_units
    )


def _units(held: PodAllocation, assignments: NodeAssignments) -> dict[str, Unit]:
    """Returns the unit of each of the pod's cards."""
    layout = assignments.layout
    return {card: layout.of(held.classes.get(card, layout.classes[0])).only for card in held.cards}


def _allocation(held: PodAllocation, assignments: NodeAssignments, now: datetime) -> Allocation:
    """Keeps what was annotated before and does not follow from the units.

    Memory comes before other classes, as at bind: dialects know it alone.
    """
    before = held.pod.allocation
    requested = before or held.pod.request
    units = _units(held, assignments)
    first = min(units.values(), key=lambda unit: unit.resource is not ResourceClass.MEMORY)
    return Allocation(
        node=assignments.node,
        uid=held.pod.uid,
        at=before.at if before else rfc3339(now),
        unit=first.text,
        resource=first.resource,
        containers={name: dict(shares) for name, shares in held.containers.items()},
        cards=dict(held.cards),
        cpu=requested.cpu if requested else "0",
        memory=requested.memory if requested else "0",
        other_units={card: unit.text for card, unit in units.items() if unit != first},
    )
