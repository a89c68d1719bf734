"""Which unit is in force: a unit does not change its size while a pod holds some."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from gpushare_core.api.served import Problem, dialect_problem, mode_problem, source_problem
from gpushare_core.api.share_node import NodeSpec
from gpushare_core.placement.units import MemoryUnit
from gpushare_plugin.decide.holdings import Books
from gpushare_plugin.decide.pods import Pod, PodName, Pods


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod that holds units, or was promised some."""

    unit: MemoryUnit | None
    """As annotated; None where there is no annotation."""
    admitted: bool
    """Whether the kubelet's books have it."""


@dataclass(frozen=True, slots=True)
class InForce:
    """``unit`` is served; ``blocked_by`` pods keep the wanted one from being."""

    unit: MemoryUnit
    blocked_by: int = 0


def find_holders(pods: Pods, books: Books) -> list[Holder]:
    """One per pod; a pod that was neither admitted nor promised anything is none."""
    held = {holding.name for holding in books.holders()}
    known = [Holder(annotated_unit(pod), name in held) for name, pod in pods.items() if _counts(pod, held)]
    return known + [Holder(None, admitted=True) for name in held if name not in pods]


def _counts(pod: Pod, held: Collection[PodName]) -> bool:
    return pod.name in held or pod.allocation is not None


def annotated_unit(pod: Pod) -> MemoryUnit | None:
    return parse_unit(pod.allocation.unit) if pod.allocation else None


def parse_unit(text: str) -> MemoryUnit | None:
    """The unit that a program wrote down, None for anything else."""
    try:
        return MemoryUnit.parse(text)
    except ValueError:
        return None


def unit_in_force(wanted: MemoryUnit, recorded: MemoryUnit | None, holders: Iterable[Holder]) -> InForce:
    """``wanted``, unless pods hold units of another size.

    ``recorded`` is the unit that was served until now. Where that is not known, as after a policy was
    deleted and applied anew, the pods' annotations tell.
    """
    every = list(holders)
    served = recorded or _most_annotated(every) or wanted
    if served.size == wanted.size:
        return InForce(wanted)
    blocking = sum(holder.admitted or _size(holder) == served.size for holder in every)
    return InForce(served, blocking) if blocking else InForce(wanted)


def _size(holder: Holder) -> int | None:
    return holder.unit.size if holder.unit else None


def _most_annotated(holders: list[Holder]) -> MemoryUnit | None:
    """Admitted pods know better than promised ones."""
    admitted = Counter(holder.unit for holder in holders if holder.unit and holder.admitted)
    promised = Counter(holder.unit for holder in holders if holder.unit)
    ranked = (admitted or promised).most_common(1)
    return ranked[0][0] if ranked else None


def unsupported(spec: NodeSpec) -> Problem | None:
    """What of ``spec`` this version cannot serve."""
    found = mode_problem(spec.mode) or dialect_problem(spec.dialect) or source_problem(spec.devices.source)
    if found is None and parse_unit(spec.memory_unit) is None:
        return Problem("InvalidUnit", f"memoryUnit {spec.memory_unit!r} is no size: use one such as 1Gi")
    return found
