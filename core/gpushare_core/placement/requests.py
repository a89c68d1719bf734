"""What a pod asks for, as the scheduler and the kubelet count it.

Source: KEP-753 (sidecar containers) and ``k8s.io/component-helpers/resource``: ordinary init containers run
before the others and lend them their devices, restartable ones stay and add up.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpushare_core.json_object import Json
from gpushare_core.placement.quantity import parse_amount, sum_amounts


@dataclass(frozen=True, slots=True)
class PodRequest:
    """What one pod asks for: units of an extended resource, CPU and memory."""

    containers: Mapping[str, int]
    """Container name -> units, only those that ask; in the order in which the kubelet starts them."""
    total: int
    """Units: the most that the pod holds at any moment."""
    init_containers: frozenset[str] = frozenset()
    """Names of the ordinary init containers, whether they ask or not."""
    cpu: str = "0"
    memory: str = "0"
    """Quantities: the requests of the containers that run together."""

    @property
    def running_containers(self) -> dict[str, int]:
        """``containers`` without the ordinary init containers: those that PodResources shows."""
        return {name: units for name, units in self.containers.items() if name not in self.init_containers}


def read_request(spec: Json, resource: str) -> PodRequest:
    """Returns what ``spec`` (a PodSpec as JSON) asks of ``resource``.

    Amounts that are no whole numbers count as nothing: the API server refuses fractions of extended
    resources, so only a foreign caller can send one.
    """
    init, main = spec.get("initContainers") or (), spec.get("containers") or ()
    init_units, main_units = ([_units(each, resource) for each in part] for part in (init, main))
    containers = zip((*init, *main), (*init_units, *main_units), strict=True)
    restartable = [_restartable(container) for container in init]
    ordinary = [container for container, stays in zip(init, restartable, strict=True) if not stays]
    running = [container for container, stays in zip(init, restartable, strict=True) if stays]
    return PodRequest(
        containers={container["name"]: units for container, units in containers if units},
        total=_total(zip(init_units, restartable, strict=True), sum(main_units)),
        init_containers=frozenset(container["name"] for container in ordinary),
        cpu=_sum_requests([*running, *main], "cpu"),
        memory=_sum_requests([*running, *main], "memory"),
    )


def _total(init: Iterable[tuple[int, bool]], main: int) -> int:
    """Returns the most units that are held at any moment; ``init`` has units and whether they stay."""
    staying = peak = 0
    for units, restartable in init:
        peak = max(peak, staying + units)
        staying += units if restartable else 0
    return max(peak, staying + main)


def _restartable(container: Json) -> bool:
    """Whether an init container runs on beside the containers after it."""
    return container.get("restartPolicy") == "Always"


def _units(container: Json, resource: str) -> int:
    limits = (container.get("resources") or {}).get("limits") or {}
    try:
        units = parse_amount(str(limits.get(resource, 0)))  # the API server leaves 2k and 2e3 as they are
    except ValueError:
        return 0
    return units.numerator if units.denominator == 1 else 0


def _sum_requests(containers: Iterable[Json], resource: str) -> str:
    """Only shown, never counted: ``0`` where an amount cannot be read."""
    amounts = (_requests(container).get(resource) for container in containers)
    try:
        return sum_amounts(str(amount) for amount in amounts if amount)
    except ValueError:
        return "0"


def _requests(container: Json) -> Mapping[str, Any]:
    """A limit stands for a request that is not there."""
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
