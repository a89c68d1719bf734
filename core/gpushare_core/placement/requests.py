"""What a pod asks for, as the scheduler and the kubelet count it.

Source: KEP-753 (sidecar containers) and ``k8s.io/component-helpers/resource``: ordinary init containers run
before the others and lend them their devices, restartable ones stay and add up.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gpushare_core.placement.amounts import parse_amount, sum_amounts

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PodRequest:
    """Units of one extended resource, per container and together."""

    containers: dict[str, int]
    """Container name -> units, only those that ask; in the order in which the kubelet starts them."""
    total: int
    """The most that the pod holds at any moment."""


def pod_request(spec: Json, resource: str) -> PodRequest:
    """Read ``spec`` (a PodSpec as JSON) for ``resource``; amounts that are no whole numbers count as nothing.

    The API server refuses fractions of extended resources, so only a foreign caller can send one.
    """
    containers: dict[str, int] = {}
    staying = peak = 0
    for container, restartable in _init_containers(spec):
        units = _units(container, resource)
        containers[container["name"]] = units
        if restartable:
            staying += units
        peak = max(peak, staying if restartable else staying + units)
    for container in spec.get("containers") or ():
        containers[container["name"]] = units = _units(container, resource)
        staying += units
    return PodRequest({name: units for name, units in containers.items() if units}, max(peak, staying))


def asked_sum(spec: Json, resource: str) -> str:
    """CPU or memory requests of the containers that run together: regular and restartable.

    Only told, never counted: with an amount that nobody can read it is ``0``.
    """
    staying = [container for container, restartable in _init_containers(spec) if restartable]
    requests = (
        _requests(container).get(resource) for container in [*staying, *(spec.get("containers") or ())]
    )
    try:
        return sum_amounts(str(amount) for amount in requests if amount)
    except ValueError:
        return "0"


def _init_containers(spec: Json) -> Iterator[tuple[Json, bool]]:
    for container in spec.get("initContainers") or ():
        yield container, container.get("restartPolicy") == "Always"


def _units(container: Json, resource: str) -> int:
    resources = container.get("resources") or {}
    amount = str((resources.get("limits") or {}).get(resource, 0))
    try:
        units = parse_amount(amount)  # the API server leaves 2k and 2e3 as they are
    except ValueError:
        return 0
    return units.numerator if units.denominator == 1 else 0


def _requests(container: Json) -> Mapping[str, Any]:
    resources = container.get("resources") or {}
    return {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
