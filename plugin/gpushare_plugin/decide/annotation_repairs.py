"""Repairs of annotations that do not say what the kubelet has assigned: the kubelet is right."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.timestamps import rfc3339
from gpushare_core.books.allocation import Allocation, encode_allocation
from gpushare_core.placement.units import Unit
from gpushare_plugin.decide.allocations import NodeAssignments, PodAllocation, admitted_allocations
from gpushare_plugin.decide.pods import Pod, PodName
from gpushare_plugin.decide.unit_change import parse_unit


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
        and _means_the_same(annotated.unit, assignments.layout.unit)
        and annotated.resource is assignments.layout.unit.resource
        and annotated.containers == held.containers
        and annotated.held() == held.cards
    )


def _means_the_same(annotated: str, unit: Unit) -> bool:
    parsed = parse_unit(annotated)
    return parsed is not None and parsed.meaning == unit.meaning


def _allocation(held: PodAllocation, assignments: NodeAssignments, now: datetime) -> Allocation:
    """What was annotated before and does not follow from the units is kept."""
    before = held.pod.allocation
    requested = before or held.pod.request
    return Allocation(
        node=assignments.node,
        uid=held.pod.uid,
        at=before.at if before else rfc3339(now),
        unit=assignments.layout.unit.text,
        resource=assignments.layout.unit.resource,
        containers={name: dict(shares) for name, shares in held.containers.items()},
        cards=dict(held.cards),
        cpu=requested.cpu if requested else "0",
        memory=requested.memory if requested else "0",
    )
