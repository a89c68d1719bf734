"""The books of this node as the plugin has them, audited by the rules of all.

That is what the API server has of its pods, PodResources, the checkpoint with the environment that each
container was given, the status as it is to be written, and the cards themselves.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

import msgspec

from gpushare_core.api.share_node import CardStatus, NodeStatus
from gpushare_core.audit.difference import Difference, Kind
from gpushare_core.audit.differences import node_differences
from gpushare_core.audit.lasting import LastingDifferences
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
from gpushare_core.audit.status_card import status_card
from gpushare_core.dialects.annotation_room import size_of
from gpushare_core.placement.units import parse_node_unit
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, Pods
from gpushare_plugin.devices.card import PhysicalCard

TOO_MUCH = frozenset({Kind.OVER_CAPACITY, Kind.TWO_CLASSES, Kind.GRANTED_TWICE})
"""Kinds that a pod on its way never makes."""
APART_SECONDS = 1.0
"""Between two audits, however much changes: of hundreds of thousands of units one takes a while."""
APART_SECONDS_WHILE_ADMITTING = 5.0
"""The same while the kubelet admits pods, who wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditInput:
    """All that the books follow from."""

    node: str
    status: NodeStatus
    """As it is to be written."""
    pods: Pods
    assigned: AssignedDevices
    cards: Sequence[PhysicalCard]
    """As they were found last."""


@dataclass(slots=True)
class NodeAudit:
    """Audits what has changed, and tells what counts: too much given out at once, the rest when it lasts."""

    lasting: LastingDifferences = field(default_factory=LastingDifferences)
    _seen: Sequence[Difference] = field(default=(), init=False)
    _audited: object = field(default=None, init=False)
    """What they are of."""
    _at: float = field(default=float("-inf"), init=False)
    _pending: bool = field(default=False, init=False)
    """Whether something has changed since that was not audited yet."""

    def look(self, given: AuditInput, *, now: float, admitting: bool = False) -> list[Difference]:
        """Returns what differs by ``given``; ``now``: in seconds of a steady clock; ``admitting``: whether
        the kubelet admits pods at this moment."""
        identity = _identity(given)
        self._pending = identity != self._audited
        apart = APART_SECONDS_WHILE_ADMITTING if admitting else APART_SECONDS
        if self._pending and now >= self._at + apart:
            self._seen, self._audited = node_differences(node_books(given)), identity
            self._at, self._pending = now, False
        lasting = {each.identity for each in self.lasting.look(self._seen, now=now)}
        return [each for each in self._seen if each.kind in TOO_MUCH or each.identity in lasting]

    def seconds_until_due(self, *, now: float) -> float | None:
        """Returns the seconds until another look may find something by time alone; None: none will."""
        lasting = self.lasting.seconds_until_due(now=now)
        pending = max(0.0, self._at + APART_SECONDS - now) if self._pending else None
        return min((due for due in (lasting, pending) if due is not None), default=None)

    def nothing_known(self) -> None:
        """The kubelet does not tell, or what it tells is not understood: nothing is compared."""
        self._seen, self._audited, self._pending = (), None, False
        self.lasting.look((), now=0.0)


def _identity(given: AuditInput) -> object:
    """Returns what is another one when the books are; memory in use is none of them."""
    status = given.status
    cards = tuple(
        (msgspec.structs.replace(each, used_memory="", pods=[]), _held(each)) for each in status.cards
    )
    sizes = tuple((card.uuid, card.memory) for card in given.cards)
    return (status.memory_unit, status.dialect, cards, sizes, tuple(given.pods.values()), given.assigned)


def _held(card: CardStatus) -> list[object]:
    """Returns the pods of ``card`` without what they use of it."""
    return [(pod.uid, pod.namespace, pod.name, pod.container, pod.units, pod.orphaned) for pod in card.pods]


def node_books(given: AuditInput) -> NodeRecords:
    """Returns what the auditor reads."""
    pods = {pod.uid: _pod(pod, given.node) for pod in given.pods.values()}
    listed = given.assigned.pods.values()
    return NodeRecords(
        node=given.node,
        share_node=_share_node(given.node, given.status),
        pods=pods,
        resources=[*chain.from_iterable(_listed(each, given.pods.get(each.name)) for each in listed)],
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


def _share_node(node: str, status: NodeStatus) -> ShareNodeRecord:
    return ShareNodeRecord(
        name=node,
        unit=parse_node_unit(status.memory_unit) if status.memory_unit else None,
        dialect=status.dialect,
        cards=tuple(map(status_card, status.cards)),
        units_total=status.units.total,
        units_allocated=status.units.allocated,
    )


def _listed(assignment: PodAssignment, named: Pod | None) -> Iterator[ListedContainer]:
    """Which pod it is was found out when it was read; ``named``: the API server's pod of that name. Another
    one may say that it is the mirror of this one: anybody can annotate that."""
    uid = named.uid if named and named.kubelet_uid == assignment.uid else assignment.uid
    for container, numbers in assignment.containers.items():
        foreign = sum(each.count for each in assignment.foreign.get(container, ()))
        if numbers or foreign:
            key = ContainerKey(PodKey(assignment.name.namespace, assignment.name.name, uid), container)
            name = min(assignment.names_of.get(container, ()), default="")
            held = HeldUnits(resource=name, numbers=numbers, foreign=foreign)
            yield ListedContainer(key=key, units=(held,))


def _stored(assigned: AssignedDevices) -> Iterator[tuple[ContainerKey, StoredContainer]]:
    for uid, containers in assigned.stored.items():
        for container, entry in containers.items():
            foreign = sum(each.count for each in entry.foreign)
            held = HeldUnits(resource=entry.name, numbers=entry.numbers, foreign=foreign)
            yield (
                ContainerKey(PodKey("", "", uid), container),
                StoredContainer(units=(held,), told=_told(entry)),
            )


def _told(entry: CheckpointEntry) -> SeenCards | None:
    if not entry.cards:
        return None
    return SeenCards(cards=tuple(card.uuid for card in entry.cards), unit=entry.unit)
