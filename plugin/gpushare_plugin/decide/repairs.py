"""Annotations that do not say what the kubelet's books say are rewritten: the kubelet is right."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.timestamps import rfc3339
from gpushare_core.books.allocation import Allocation, encode_allocation
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.admission import Grants
from gpushare_plugin.decide.effective import parse_unit
from gpushare_plugin.decide.holdings import Books, PodUnits, pod_units
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.pods import Pod, PodName, Pods


@dataclass(frozen=True, slots=True)
class Repair:
    """Set the annotation of one pod to ``allocation``."""

    name: PodName
    uid: str
    allocation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What the annotations are compared with."""

    node: str
    books: Books
    layout: Layout
    grants: Grants


def plan_repairs(truth: Truth, pods: Pods, *, now: datetime) -> list[Repair]:
    """One for each pod that was admitted and whose annotation is missing or says otherwise."""
    return [
        Repair(pod.name, pod.uid, encode_allocation(_allocation(pod, held, truth, now)))
        for pod, held in settled(truth, pods.values())
        if not _agrees(pod.allocation, held, truth)
    ]


def settled(truth: Truth, pods: Iterable[Pod]) -> Iterator[tuple[Pod, PodUnits]]:
    """The pods that hold units, and what they hold."""
    for pod in pods:
        grant = truth.grants.get(pod.uid)
        held = pod_units(pod, truth.books.pods.get(pod.name), truth.layout, grant.card if grant else None)
        if held is not None and held.cards:
            yield pod, held


def _agrees(told: Allocation | None, held: PodUnits, truth: Truth) -> bool:
    return (
        told is not None
        and told.node == truth.node
        and _same_size(told, truth.layout.unit)
        and told.containers == held.containers
        and told.held() == held.cards
    )


def _same_size(told: Allocation, unit: MemoryUnit) -> bool:
    written = parse_unit(told.unit)
    return written is not None and written.size == unit.size


def _allocation(pod: Pod, held: PodUnits, truth: Truth, now: datetime) -> Allocation:
    before = pod.allocation
    requests = before or pod.ask
    return Allocation(
        node=truth.node,
        at=before.at if before else rfc3339(now),
        unit=truth.layout.unit.text,
        containers=_plain(held.containers),
        cards=dict(held.cards),
        cpu=requests.cpu if requests else "0",
        memory=requests.memory if requests else "0",
    )


def _plain(containers: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    return {name: dict(shares) for name, shares in containers.items()}
