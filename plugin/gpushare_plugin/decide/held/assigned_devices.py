"""What the kubelet of a node has assigned: by PodResources, and where it can be read by its checkpoint."""

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from gpushare_core.placement.requests import ResourceClass
from gpushare_plugin.decide.held.checkpoint import StoredContainers
from gpushare_plugin.decide.held.pod_allocation import PodAllocation
from gpushare_plugin.decide.held.pod_assignment import PodAssignment
from gpushare_plugin.decide.held.pods import Pod, PodName
from gpushare_plugin.decide.held.preferred_cards import PreferredCard, PreferredCards
from gpushare_plugin.decide.units.foreign_units import ForeignUnits
from gpushare_plugin.decide.units.layout import Layout


@dataclass(frozen=True, slots=True)
class AssignedDevices:
    """All active pods, as of one answer of PodResources."""

    pods: Mapping[PodName, PodAssignment] = field(default_factory=dict)
    stored: Mapping[str, StoredContainers] = field(default_factory=dict)
    """Pod UID -> what the checkpoint says of it."""
    checkpoint_problem: str = ""
    """Why the checkpoint cannot be read; then ``stored`` is empty."""
    foreign_names: frozenset[str] = frozenset()
    """Extended resources of which foreign units are in ``pods`` and ``stored``."""
    unshown: frozenset[PodName] = frozenset()
    """Those of ``pods`` that the kubelet has not listed since its restart: as they were before."""
    lost: Mapping[PodName, PodAllocation] = field(default_factory=dict)
    """Those of ``pods`` that run on with units without which the kubelet lists them."""
    kubelet: str = ""
    """Which process answered: a restarted one is another one."""

    def of(self, pod: Pod) -> PodAssignment | None:
        """Returns what is listed of ``pod``; not of another one that had its name before."""
        assignment = self.pods.get(pod.name)
        return assignment if assignment and assignment.uid in ("", pod.kubelet_uid) else None

    def stored_of(self, pod: Pod) -> StoredContainers:
        return self.stored.get(pod.kubelet_uid, {})

    def has_units(self, pod: Pod) -> bool:
        assignment = self.of(pod)
        return bool(self.stored_of(pod) or (assignment and assignment.has_units))

    def lost_of(self, pod: Pod) -> PodAllocation | None:
        """Returns what ``pod`` had of which the kubelet knows nothing any more."""
        found = self.lost.get(pod.name)
        return found if found and found.is_of(pod) else None

    def holdings_of(self, pod: Pod) -> "Iterable[array[int]]":
        """Returns the units that PodResources show of each container of ``pod``."""
        assignment = self.of(pod)
        return assignment.containers.values() if assignment else ()

    def foreign(self) -> Iterator[list[ForeignUnits]]:
        """Yields the foreign units of each pod that has some, a device once for each container that has it.
        The checkpoint may show pods that have ended since it was written: they count, too."""
        listed = {pod.uid for pod in self.pods.values()}
        for assignment in self.pods.values():
            if assignment.foreign:
                yield [*chain.from_iterable(assignment.foreign.values())]
        for uid, entries in self.stored.items():
            if uid in listed:  # nearly all of them, at each admission
                continue
            if units := [*chain.from_iterable(entry.foreign for entry in entries.values())]:
                yield units

    def pods_with_units(self) -> Iterator[PodAssignment]:
        return (pod for pod in self.pods.values() if pod.has_units or self.stored.get(pod.uid))

    def numbers(self) -> Iterator[int]:
        """Yields every unit that some pod has, some of them more than once."""
        return chain.from_iterable(self.holdings())

    def holdings(self) -> Iterator["array[int]"]:
        """Yields the units of each container, of some of them more than once."""
        for assignment in self.pods.values():
            yield from assignment.containers.values()
        for containers in self.stored.values():
            yield from (entry.numbers for entry in containers.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAssignments:
    """What the kubelet of ``node`` has assigned, and what is needed to derive the cards from it."""

    node: str
    assigned: AssignedDevices
    layout: Layout
    preferred: PreferredCards
    """Cards that GetPreferredAllocation answered: where nothing else says the card of an init container."""
    recorded: Mapping[str, ResourceClass] = field(default_factory=dict)
    """Card UUID -> the class that it serves for pods of the record: the kubelet has not listed them yet."""

    def of_pod(self, pod: Pod) -> "PodSnapshot":
        """Returns what concerns ``pod`` alone: on a node with a hundred pods most are as before."""
        assigned = self.assigned
        return PodSnapshot(
            self.node,
            self.layout,
            pod,
            listed=assigned.pods.get(pod.name),
            stored=assigned.stored_of(pod),
            lost=assigned.lost.get(pod.name),
            preferred=self.preferred.get(pod.uid),
        )


class PodSnapshot(NamedTuple):
    """All that is known of one pod. What the pod has, and how it is annotated, follows from that alone."""

    node: str
    layout: Layout
    pod: Pod
    listed: PodAssignment | None
    """By the pod's name: it may be another pod's."""
    stored: StoredContainers
    lost: PodAllocation | None
    """By the pod's name."""
    preferred: PreferredCard | None
