"""The units that the kubelet has assigned to one pod, by container."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpushare_plugin.decide.held.pods import Pod, PodName
from gpushare_plugin.decide.units.foreign_units import ForeignContainers, ForeignUnits, sort_ids
from gpushare_plugin.decide.units.unit_ids import known_numbers


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
    """Every container that PodResources show -> numbers of its units, ascending and each once, four bytes
    each."""
    uid: str = ""
    """Of the pod as the kubelet knows it; empty when unknown."""
    foreign: ForeignContainers = field(default_factory=dict)
    names_of: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Container -> extended resources of which it has units of ours; only containers that have some."""
    instead_of: str = ""
    """UID by which the API server had another pod of the name when the checkpoint first told of this one, and
    has it still: this one is newer, and we have not heard of it. Empty otherwise."""

    @classmethod
    def of_devices(cls, name: PodName, devices: Mapping[str, Mapping[str, ListedDevices]]) -> "PodAssignment":
        """Returns the assignment by what each container has of each extended resource of ours.

        The kubelet lists the units in another order each time: theirs is that of their numbers.
        """
        containers = {container: array("I") for container in devices}
        foreign: dict[str, tuple[ForeignUnits, ...]] = {}
        names_of: dict[str, frozenset[str]] = {}
        for container, each in devices.items():
            for resource, listed in each.items():
                numbers, others = sort_ids(resource, listed.others)
                numbers += listed.numbers
                containers[container] = array("I", sorted({*containers[container], *numbers}))
                if others:
                    foreign[container] = (*foreign.get(container, ()), *others)
                if numbers:
                    names_of[container] = names_of.get(container, frozenset()) | {resource}
        return cls(name, containers, foreign=foreign, names_of=names_of)

    @classmethod
    def of_ids(cls, name: PodName, containers: Mapping[str, Iterable[str]]) -> "PodAssignment":
        """Returns the assignment by the IDs that each container has; IDs that are not ours are left out."""
        numbers = {container: sorted({*known_numbers(ids)}) for container, ids in containers.items()}
        return cls(name, {container: array("I", each) for container, each in numbers.items()})

    def with_uid(self, uid: str) -> "PodAssignment":
        """Returns the assignment of the pod that the kubelet knows by ``uid``."""
        if uid == self.uid:
            return self
        return PodAssignment(self.name, self.containers, uid, self.foreign, self.names_of)

    def is_unheard_of(self, pod: Pod) -> bool:
        """Whether it is of a pod that took the name of ``pod``, of which alone the API server has told."""
        return bool(self.instead_of) and self.instead_of == pod.kubelet_uid

    @property
    def names(self) -> frozenset[str]:
        """Extended resources of which it has units of ours."""
        return frozenset().union(*self.names_of.values())

    @property
    def units(self) -> int:
        """Of all containers together."""
        foreign = (unit.count for units in self.foreign.values() for unit in units)
        return sum(map(len, self.containers.values())) + sum(foreign)

    @property
    def has_units(self) -> bool:
        """Whether any container has units. Asked of each pod in each admission."""
        return any(self.containers.values()) or any(self.foreign.values())

    def has(self, container: str) -> bool:
        """Whether the container has units."""
        return bool(self.containers.get(container) or self.foreign.get(container))


def place(assignments: Iterable[PodAssignment]) -> dict[PodName, PodAssignment]:
    """Returns ``assignments`` by name; of several pods of one name the first one has it, and the others go by
    names that none can have: the API server does not know them. Where nothing tells their UIDs they get some
    that no other pod has."""
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
