"""Repairs of annotations that do not say what the kubelet has assigned: the kubelet is right."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.timestamps import rfc3339
from gpushare_core.books.allocation import Allocation, encode_allocation
from gpushare_core.placement.units import Unit, readable_unit
from gpushare_plugin.decide.allocations import NodeAssignments, PodAllocation, admitted_allocations
from gpushare_plugin.decide.pods import Pod, PodName


@dataclass(frozen=True, slots=True)
class Repair:
    """Set the annotation of one pod to ``annotation``."""

    pod: PodName
    uid: str
    annotation: str


def plan_repairs(assignments: NodeAssignments, pods: Iterable[Pod], *, now: datetime) -> list[Repair]:
    """Returns one for each pod that was admitted and whose annotation is missing or says otherwise."""
    return [
        Repair(held.pod.name, held.pod.uid, encode_allocation(_allocation(held, assignments, now)))
        for held in admitted_allocations(assignments, pods)
        if not _agrees(held.pod.allocation, held, assignments)
    ]


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
    """What was annotated before and does not follow from the units is kept."""
    before = held.pod.allocation
    requested = before or held.pod.request
    units = _units(held, assignments)
    unit = next(iter(units.values()))
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
