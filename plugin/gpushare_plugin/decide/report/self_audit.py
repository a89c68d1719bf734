"""The audit of this node: its records, compared by the rules that hold in all programs.

The records are the API server's pods, PodResources, the checkpoint with the environment that each container
was given, the status that is to be written, and the cards themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from gpushare_core.api.share_node import NodeStatus
from gpushare_core.audit.auditor import node_differences
from gpushare_core.audit.difference import Difference, DifferenceKind, LastingDifferences
from gpushare_core.audit.readers import status_card
from gpushare_core.audit.records import (
    ContainerKey,
    HeldUnits,
    ListedContainer,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    ShareNodeRecord,
    StoredContainer,
)
from gpushare_core.dialects.annotation_room import size_of
from gpushare_core.placement.units import parse_node_unit
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, Pods
from gpushare_plugin.devices.card import PhysicalCard

TOO_MUCH = frozenset({DifferenceKind.OVER_CAPACITY, DifferenceKind.TWO_CLASSES, DifferenceKind.GRANTED_TWICE})
"""Kinds that count at once: a pod on its way never causes one."""
APART_SECONDS = 1.0
"""Between two audits at least: one of hundreds of thousands of units takes a while."""
APART_SECONDS_WHILE_ADMITTING = 5.0
"""The same while the kubelet admits pods, which would wait for the audit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInput:
    node: str
    status: NodeStatus
    """As it is to be written."""
    pods: Pods
    assigned: AssignedDevices
    cards: Sequence[PhysicalCard]
    """By the last reading."""


@dataclass(slots=True)
class NodeAudit:
    """Audits what has changed. A difference in ``TOO_MUCH`` counts at once, another one when it lasts."""

    lasting: LastingDifferences = field(default_factory=LastingDifferences)
    _found: Sequence[Difference] = field(default=(), init=False)
    _audited: object = field(default=None, init=False)
    """The identity of the records in which they were found."""
    _at: float = field(default=float("-inf"), init=False)
    _pending: bool = field(default=False, init=False)
    """Whether the records have changed since."""

    def look(self, given: AuditInput, *, now: float, admitting: bool = False) -> list[Difference]:
        """Returns the differences that count. ``now``: in steady seconds. ``admitting``: whether the kubelet
        admits pods at this moment."""
        identity = _identity(given)
        self._pending = identity != self._audited
        apart = APART_SECONDS_WHILE_ADMITTING if admitting else APART_SECONDS
        if self._pending and now >= self._at + apart:
            self._found, self._audited = node_differences(node_records(given)), identity
            self._at, self._pending = now, False
        lasting = {difference.identity for difference in self.lasting.look(self._found, now=now)}
        return [found for found in self._found if found.kind in TOO_MUCH or found.identity in lasting]

    def seconds_until_due(self, *, now: float) -> float | None:
        """Returns the seconds until another look may find something by time alone, or None."""
        lasting = self.lasting.seconds_until_due(now=now)
        pending = max(0.0, self._at + APART_SECONDS - now) if self._pending else None
        return min((due for due in (lasting, pending) if due is not None), default=None)

    def nothing_known(self) -> None:
        """Forgets all differences: the kubelet does not answer, or it is not known what units mean."""
        self._found, self._audited, self._pending = (), None, False
        self.lasting.look((), now=0.0)


def _identity(given: AuditInput) -> object:
    """Returns what is equal as long as the records are; memory in use belongs to none of them."""
    status = given.status
    cards = tuple(
        (
            msgspec.structs.replace(card, used_memory="", pods=[]),
            [(pod.uid, pod.namespace, pod.name, pod.container, pod.units, pod.orphaned) for pod in card.pods],
        )
        for card in status.cards
    )
    sizes = tuple((card.uuid, card.memory) for card in given.cards)
    return (status.memory_unit, status.dialect, cards, sizes, tuple(given.pods.values()), given.assigned)


def node_records(given: AuditInput) -> NodeRecords:
    pods = {pod.uid: _pod(pod, given.node) for pod in given.pods.values()}
    listed, status = given.assigned.pods.values(), given.status
    return NodeRecords(
        node=given.node,
        share_node=ShareNodeRecord(
            name=given.node,
            unit=parse_node_unit(status.memory_unit) if status.memory_unit else None,
            dialect=status.dialect,
            cards=tuple(map(status_card, status.cards)),
            units_total=status.units.total,
            units_allocated=status.units.allocated,
        ),
        pods=pods,
        resources=[*chain.from_iterable(_listed(pod, given.pods.get(pod.name)) for pod in listed)],
        checkpoint=None if given.assigned.checkpoint_problem else dict(_stored(given.assigned)),
        hardware={card.uuid: card.memory for card in given.cards},
    )


def _pod(pod: Pod, node: str) -> PodRecord:
    return PodRecord(
        key=PodKey(pod.name.namespace, pod.name.name, pod.uid),
        node=node,
        kubelet_uid=pod.kubelet_uid,
        phase="Running" if pod.running else "Pending",
        deleting=pod.deleting,
        request=pod.asked,
        annotations=pod.annotations,
        annotations_size=pod.others_size + size_of(pod.annotations),
    )


def _listed(assignment: PodAssignment, named: Pod | None) -> Iterator[ListedContainer]:
    """``named``: the API server's pod of the listed name. It counts only where the reading has found it to be
    this pod: anybody can annotate a pod as the mirror of another."""
    uid = named.uid if named and named.kubelet_uid == assignment.uid else assignment.uid
    for container, numbers in assignment.containers.items():
        foreign = sum(units.count for units in assignment.foreign.get(container, ()))
        if numbers or foreign:
            key = ContainerKey(PodKey(assignment.name.namespace, assignment.name.name, uid), container)
            name = min(assignment.names_of.get(container, ()), default="")
            held = HeldUnits(resource=name, numbers=numbers, foreign=foreign)
            yield ListedContainer(key=key, units=(held,))


def _stored(assigned: AssignedDevices) -> Iterator[tuple[ContainerKey, StoredContainer]]:
    for uid, containers in assigned.stored.items():
        for container, entry in containers.items():
            foreign = sum(units.count for units in entry.foreign)
            held = HeldUnits(resource=entry.name, numbers=entry.numbers, foreign=foreign)
            cards = tuple(card.uuid for card in entry.cards)
            seen = SeenCards(cards=cards, unit=entry.unit) if cards else None
            yield ContainerKey(PodKey("", "", uid), container), StoredContainer(units=(held,), response=seen)
