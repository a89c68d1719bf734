"""The units that the kubelet has assigned to one pod, by container."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpushare_plugin.decide.held.pods import Pod, PodName
from gpushare_plugin.decide.units.foreign_units import ForeignContainers, ForeignUnits, sort_ids


@dataclass(frozen=True, slots=True)
class ListedDevices:
    """Devices that a container has of one extended resource of ours."""

    numbers: "array[int]" = field(default_factory=lambda: array("I"))
    """Of units that are known to be ours."""
    others: list[str] = field(default_factory=list)
    """IDs of the rest, ours or not."""


@dataclass(frozen=True, slots=True)
class PodAssignment:
    """One active pod of this node, with units or without."""

    name: PodName
    containers: Mapping[str, "array[int]"]
    """Every container that PodResources list -> numbers of its units, ascending, each once, in four bytes."""
    uid: str = ""
    """Of the pod as the kubelet knows it; empty when unknown."""
    foreign: ForeignContainers = field(default_factory=dict)
    names_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Container -> extended resources of which it has units of ours; only containers that have some."""
    instead_of: str = ""
    """UID of another pod of the name that the API server had when the checkpoint first had this one, and has
    still: this one is newer, and the API server has not told of it. Empty otherwise."""

    @classmethod
    def of_devices(cls, name: PodName, devices: Mapping[str, Mapping[str, ListedDevices]]) -> "PodAssignment":
        """Returns the assignment by what each container has of each extended resource of ours.

        The kubelet lists the units in another order each time: theirs is that of their numbers.
        """
        containers = {container: array("I") for container in devices}
        foreign: dict[str, tuple[ForeignUnits, ...]] = {}
        names_of: dict[str, frozenset[str]] = {}
        for container, by_resource in devices.items():
            for resource, listed in by_resource.items():
                numbers, others = sort_ids(resource, listed.others)
                numbers += listed.numbers
                containers[container] = array("I", sorted({*containers[container], *numbers}))
                if others:
                    foreign[container] = (*foreign.get(container, ()), *others)
                if numbers:
                    names_of[container] = names_of.get(container, frozenset()) | {resource}
        return cls(name, containers, foreign=foreign, names_of=names_of)

    def with_uid(self, uid: str) -> "PodAssignment":
        if uid == self.uid:
            return self
        return PodAssignment(self.name, self.containers, uid, self.foreign, self.names_of)

    def is_unheard_of(self, pod: Pod) -> bool:
        """Whether it is of a pod that took the name of ``pod``, and that the API server has not told of."""
        return bool(self.instead_of) and self.instead_of == pod.kubelet_uid

    @property
    def names(self) -> frozenset[str]:
        return frozenset().union(*self.names_of.values())

    @property
    def units(self) -> int:
        foreign = (unit.count for units in self.foreign.values() for unit in units)
        return sum(map(len, self.containers.values())) + sum(foreign)

    @property
    def has_units(self) -> bool:
        """Asked of each pod in each admission."""
        return any(self.containers.values()) or any(self.foreign.values())

    def has(self, container: str) -> bool:
        return bool(self.containers.get(container) or self.foreign.get(container))


def place(assignments: Iterable[PodAssignment]) -> dict[PodName, PodAssignment]:
    """Returns ``assignments`` by name. Of several pods of one name the first has it. The others get names
    that no pod can have, so that the API server does not know them, and UIDs that no pod has where theirs are
    unknown."""
    placed: dict[PodName, PodAssignment] = {}
    for assignment in assignments:
        key, count = assignment.name, 1
        while key in placed:
            count += 1
            key = PodName(assignment.name.namespace, f"{assignment.name.name} ({count})")
        placed[key] = (
            assignment
            if key == assignment.name or assignment.uid
            else replace(assignment, uid=f"unknown, of {key}")
        )
    return placed
