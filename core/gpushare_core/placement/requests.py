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
    init = spec.get("initContainers") or ()
    main = spec.get("containers") or ()
    units = {container["name"]: _units(container, resource) for container in (*init, *main)}
    return PodRequest(
        containers={name: amount for name, amount in units.items() if amount},
        total=_total(init, main, resource),
        init_containers=frozenset(container["name"] for container in init if not _restartable(container)),
        cpu=_sum_requests([*filter(_restartable, init), *main], "cpu"),
        memory=_sum_requests([*filter(_restartable, init), *main], "memory"),
    )


def _total(init: Iterable[Json], main: Iterable[Json], resource: str) -> int:
    """Returns the most units that are held at any moment."""
    staying = peak = 0
    for container in init:
        units = _units(container, resource)
        peak = max(peak, staying + units)
        staying += units if _restartable(container) else 0
    return max(peak, staying + sum(_units(container, resource) for container in main))


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
