"""What a pod asks for, as the scheduler and the kubelet count it.

Source: KEP-753 (sidecar containers) and ``k8s.io/component-helpers/resource``: ordinary init containers run
before the others and lend them their devices, restartable ones stay and add up.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from math import ceil
from typing import Any

from gpushare_core.placement.quantity import read_amount, sum_amounts
from gpushare_core.text.json_object import Json


class ResourceClass(StrEnum):
    """What of a card a pod asks for."""

    MEMORY = "memory"
    SLICE = "slice"
    CARD = "card"


_CLASSES = tuple(ResourceClass)
MAX_CONTAINERS_SHOWN = 4
"""In a sentence for people."""


@dataclass(frozen=True, slots=True)
class ResourceRequest:
    """What one pod asks of one extended resource."""

    name: str
    """Of the extended resource as the pod has it, for example ``gpushare.io/memory``."""
    resource: ResourceClass
    total: int
    """The most that the pod holds at any moment."""
    containers: Mapping[str, int] = field(default_factory=dict)
    """Container name -> amount, only those that ask; in the order in which the kubelet starts them."""

    @property
    def resources(self) -> "tuple[ResourceRequest, ...]":
        """Just this one."""
        return (self,)

    @property
    def by_container(self) -> str:
        """For people, in brackets: how much each container asks for; empty where these do not add up to the
        total."""
        if len(self.containers) < 2 or sum(self.containers.values()) != self.total:
            return ""
        shown = [f"{name} {amount}" for name, amount in self.containers.items()][:MAX_CONTAINERS_SHOWN]
        rest = len(self.containers) - len(shown)
        return f" (its containers together: {', '.join(shown)}{f' and {rest} more' if rest else ''})"


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What one pod asks for: amounts of the resource classes, CPU and memory."""

    resources: tuple[ResourceRequest, ...] = ()
    """One for each extended resource that the pod asks for, in the order of their classes. Where only one
    class can be shown, as in dialects, it is the first."""
    init_containers: frozenset[str] = frozenset()
    """Names of the ordinary init containers, whether they ask or not."""
    cpu: str = "0"
    memory: str = "0"
    """Quantities: the requests of the containers that run together."""
    priority: int = 0
    """Of the pod: holds for pods of a lower priority do not count for it."""

    def of(self, names: Collection[str]) -> "PodRequest":
        asked = tuple(resource for resource in self.resources if resource.name in names)
        return self if len(asked) == len(self.resources) else replace(self, resources=asked)

    @property
    def parts(self) -> "tuple[PodRequest, ...]":
        if len(self.resources) == 1:
            return (self,)
        return tuple(replace(self, resources=(resource,)) for resource in self.resources)

    @property
    def crowded_containers(self) -> tuple[str, ...]:
        """Names of the containers that ask for several resources: no kubelet can give them these."""
        if len(self.resources) < 2:
            return ()
        asking = Counter(name for resource in self.resources for name in resource.containers)
        return tuple(name for name, count in asking.items() if count > 1)

    @property
    def containers(self) -> Mapping[str, int]:
        """Container name -> amount of the resource that it asks for, in the order in which the kubelet starts
        those that ask for the same. Without those that ask for several: no node admits them."""
        if len(self.resources) == 1:
            return self.resources[0].containers
        amounts = {name: units for resource in self.resources for name, units in resource.containers.items()}
        return {name: units for name, units in amounts.items() if name not in self.crowded_containers}

    @property
    def total(self) -> int:
        """The most units, of all resources together, that the pod holds at any moment."""
        return sum(resource.total for resource in self.resources)

    @property
    def running_containers(self) -> dict[str, int]:
        """``containers`` without the ordinary init containers: those that PodResources shows."""
        return {name: units for name, units in self.containers.items() if name not in self.init_containers}


Request = ResourceRequest | PodRequest
"""What has ``resources``."""


def read_request(spec: Json, resources: Mapping[str, ResourceClass]) -> PodRequest:
    """Returns what ``spec`` (a PodSpec as JSON) asks of the extended ``resources``, by their names. Amounts
    are rounded up as by ``Quantity.Value``."""
    init, main = spec.get("initContainers") or (), spec.get("containers") or ()
    ordinary = [container for container in init if not _restartable(container)]
    running = [container for container in init if _restartable(container)]
    named = {name for container in (*init, *main) for name in _limits(container)}
    requests = (
        _resource_request(init, main, name, resource)
        for name, resource in resources.items()
        if name in named  # of all names of all dialects a pod has one
    )
    return PodRequest(
        resources=tuple(sorted((request for request in requests if request.total), key=_place)),
        init_containers=frozenset(container["name"] for container in ordinary),
        cpu=_sum_requests([*running, *main], "cpu"),
        memory=_sum_requests([*running, *main], "memory"),
        priority=spec.get("priority") or 0,
    )


def _resource_request(
    init: Iterable[Json], main: Iterable[Json], name: str, resource: ResourceClass
) -> ResourceRequest:
    init_units = [(_units(container, name), _restartable(container)) for container in init]
    main_units = [_units(container, name) for container in main]
    amounts = zip((*init, *main), (*(units for units, _ in init_units), *main_units), strict=True)
    return ResourceRequest(
        name,
        resource,
        _total(init_units, sum(main_units)),
        {container["name"]: units for container, units in amounts if units},
    )


def _place(request: ResourceRequest) -> int:
    return _CLASSES.index(request.resource)


def _total(init: Iterable[tuple[int, bool]], main: int) -> int:
    """Returns the most units that are held at any moment; ``init`` has units and whether they stay."""
    staying = peak = 0
    for units, restartable in init:
        peak = max(peak, staying + units)
        staying += units if restartable else 0
    return max(peak, staying + main)


def _restartable(container: Json) -> bool:
    """Returns whether an init container keeps running beside the containers after it."""
    return container.get("restartPolicy") == "Always"


def _limits(container: Json) -> Mapping[str, Any]:
    return (container.get("resources") or {}).get("limits") or {}


def _units(container: Json, resource: str) -> int:
    return ceil(read_amount(_limits(container).get(resource)))


def _sum_requests(containers: Iterable[Json], resource: str) -> str:
    amounts = (_requests(container).get(resource) for container in containers)
    return sum_amounts(str(amount) for amount in amounts if amount is not None)


def _requests(container: Json) -> Mapping[str, Any]:
    """A limit stands for a request that is not there."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
