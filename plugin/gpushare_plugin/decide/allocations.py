"""What pods have: the units that the kubelet assigned to them, and the cards that follow from these.

The assignment is read from PodResources, but nothing here depends on who kept it.
"""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from gpushare_core.books.allocation import sum_shares
from gpushare_core.placement.requests import PodRequest
from gpushare_plugin.decide.layout import Layout
from gpushare_plugin.decide.pods import Pod, PodName
from gpushare_plugin.decide.preferred_allocation import PreferredCards
from gpushare_plugin.decide.unit_ids import known_numbers


@dataclass(frozen=True, slots=True)
class PodAssignment:
    """One active pod of this node, with units or without."""

    name: PodName
    containers: Mapping[str, "array[int]"]
    """Every container that PodResources show -> numbers of its units, four bytes each."""

    @classmethod
    def of_ids(cls, name: PodName, containers: Mapping[str, Iterable[str]]) -> "PodAssignment":
        """Returns the assignment by the IDs that each container has; IDs that are not ours are left out."""
        return cls(name, {container: array("I", known_numbers(ids)) for container, ids in containers.items()})

    @property
    def units(self) -> int:
        """Of all containers together."""
        return sum(map(len, self.containers.values()))


@dataclass(frozen=True, slots=True)
class AssignedDevices:
    """All active pods, as of one answer of PodResources."""

    pods: Mapping[PodName, PodAssignment] = field(default_factory=dict)

    def pods_with_units(self) -> Iterator[PodAssignment]:
        """Yields the pods to which units are assigned."""
        return (assignment for assignment in self.pods.values() if assignment.units)

    def has_units(self, name: PodName) -> bool:
        """Whether units are assigned to this pod."""
        return name in self.pods and self.pods[name].units > 0

    def numbers(self) -> Iterator[int]:
        """Yields every unit that some pod has."""
        for assignment in self.pods_with_units():
            for numbers in assignment.containers.values():
                yield from numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAssignments:
    """What the kubelet of ``node`` has assigned, and what is needed to derive the cards from it."""

    node: str
    assigned: AssignedDevices
    layout: Layout
    preferred: PreferredCards
    """Cards that GetPreferredAllocation answered: where nothing else shows the card of an init container."""


@dataclass(frozen=True, slots=True)
class PodAllocation:
    """What one admitted pod has."""

    pod: Pod
    containers: Mapping[str, Mapping[str, int]]
    """Container -> card UUID -> units; ordinary init containers are included where their card is known."""
    cards: Mapping[str, int]
    """Card UUID -> units that the kubelet keeps for the pod as a whole."""


def admitted_allocations(assignments: NodeAssignments, pods: Iterable[Pod]) -> Iterator[PodAllocation]:
    """Yields the allocation of each of ``pods`` that was admitted and has units."""
    for pod in pods:
        allocation = pod_allocation(pod, assignments)
        if allocation is not None and allocation.cards:
            yield allocation


def pod_allocation(pod: Pod, assignments: NodeAssignments) -> PodAllocation | None:
    """Returns what ``pod`` has, or None while it is not admitted completely.

    PodResources do not show ordinary init containers, but the kubelet keeps their units until the pod ends.
    Their card is the one where the pod's other units are; failing that the card that was preferred, or the
    annotated one.
    """
    assignment, request = assignments.assigned.pods.get(pod.name), pod.request
    if assignment is None or request is None or not request.containers:
        return None
    running = request.running_containers
    if not all(assignment.containers.get(name) for name in running):
        return None
    containers = {name: assignments.layout.shares(assignment.containers[name]) for name in running}
    return _with_init_containers(pod, request, containers, assignments.preferred)


def _with_init_containers(
    pod: Pod, request: PodRequest, containers: dict[str, dict[str, int]], preferred: PreferredCards
) -> PodAllocation | None:
    cards = sum_shares(containers)
    init = {name: units for name, units in request.containers.items() if name in request.init_containers}
    if not init:
        return PodAllocation(pod, containers, cards)
    card = next(iter(cards), None) or _preferred_card(pod, preferred) or pod.annotated_card
    if card is None:
        return None
    beyond = max(0, request.total - sum(cards.values()))
    cards[card] = cards.get(card, 0) + beyond
    return PodAllocation(pod, {**{name: {card: units} for name, units in init.items()}, **containers}, cards)


def _preferred_card(pod: Pod, preferred: PreferredCards) -> str | None:
    return preferred[pod.uid].card if pod.uid in preferred else None


def promised_units(pods: Iterable[Pod], assigned: AssignedDevices) -> dict[str, int]:
    """Returns card UUID -> units that are annotated to pods which the kubelet has not admitted yet."""
    promised: Counter[str] = Counter()
    for pod in pods:
        if not assigned.has_units(pod.name) and (allocation := pod.allocation):
            promised.update(allocation.held())
    return dict(promised)
