"""When a new memory unit takes effect: a unit does not change its size while a pod holds some."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.allocations import AssignedDevices
from gpushare_plugin.decide.pods import Pod, Pods


@dataclass(frozen=True, slots=True)
class HeldUnit:
    """The unit in which one pod holds memory, or was promised some."""

    unit: MemoryUnit | None
    """As annotated; None where there is no annotation."""
    admitted: bool
    """Whether the kubelet has assigned the pod its units."""


@dataclass(frozen=True, slots=True)
class UnitInForce:
    """``unit`` is served; ``blocked_by`` pods keep the desired one from being."""

    unit: MemoryUnit
    blocked_by: int = 0


def held_units(pods: Pods, assigned: AssignedDevices) -> list[HeldUnit]:
    """Returns one entry per pod; a pod that was neither admitted nor promised anything has none."""
    admitted = {assignment.name for assignment in assigned.pods_with_units()}
    known = [
        HeldUnit(_annotated_unit(pod), name in admitted)
        for name, pod in pods.items()
        if name in admitted or pod.allocation is not None
    ]
    return known + [HeldUnit(None, admitted=True) for name in admitted if name not in pods]


def unit_in_force(desired: MemoryUnit, recorded: MemoryUnit | None, held: Iterable[HeldUnit]) -> UnitInForce:
    """Returns ``desired``, unless pods hold units of another size.

    ``recorded`` is the unit that was served until now. Where that is not known, as after a policy was
    deleted and applied anew, it is taken from the pods' annotations.
    """
    held = list(held)
    served = recorded or _most_annotated(held) or desired
    if served.size == desired.size:
        return UnitInForce(desired)
    blocking = sum(pod.admitted or _size(pod) == served.size for pod in held)
    return UnitInForce(served, blocking) if blocking else UnitInForce(desired)


def parse_unit(text: str) -> MemoryUnit | None:
    """Returns the unit that a program or a person wrote down, or None for what is no unit."""
    try:
        return MemoryUnit.parse(text)
    except ValueError:
        return None


def _annotated_unit(pod: Pod) -> MemoryUnit | None:
    return parse_unit(pod.allocation.unit) if pod.allocation else None


def _size(held: HeldUnit) -> int | None:
    return held.unit.size if held.unit else None


def _most_annotated(held: list[HeldUnit]) -> MemoryUnit | None:
    """Admitted pods know better than promised ones."""
    admitted = Counter(pod.unit for pod in held if pod.unit and pod.admitted)
    promised = Counter(pod.unit for pod in held if pod.unit)
    ranked = (admitted or promised).most_common(1)
    return ranked[0][0] if ranked else None
