"""When a new unit takes effect, or a new mode: units do not change what they mean while a pod holds some."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gpushare_core.placement.units import NodeUnit, Unit, readable_unit
from gpushare_plugin.decide.held.allocations import lost_assignments_without_pod, orphans
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.pods import Pod, Pods


@dataclass(frozen=True, slots=True)
class HeldUnit:
    """The unit in which one pod holds memory, or was promised some."""

    unit: Unit | None
    """As annotated; None where there is no annotation."""
    admitted: bool
    """Whether the kubelet has assigned the pod its units."""
    pod: str = ""
    """For people: namespace and name, or what else is known of it."""


def held_units(pods: Pods, assigned: AssignedDevices) -> list[HeldUnit]:
    """Returns the unit of each pod that was admitted or promised units. Pods that the API server does not
    know (any more) count as long as the kubelet keeps their units."""
    known = [
        HeldUnit(_annotated_unit(pod), admitted=is_admitted(pod, assigned), pod=str(pod.name))
        for pod in pods.values()
        if is_admitted(pod, assigned) or pod.allocation is not None
    ]
    unknown = {str(orphan.name) for orphan in orphans(assigned, pods)}
    unknown |= {str(lost.pod.name) for lost in lost_assignments_without_pod(assigned, pods)}
    listed = {pod.uid for pod in assigned.pods.values()} | {pod.kubelet_uid for pod in pods.values()}
    unlisted = {f"the pod with the UID {uid}" for uid in assigned.stored.keys() - listed}
    return known + [HeldUnit(None, admitted=True, pod=pod) for pod in sorted(unknown | unlisted)]


def is_admitted(pod: Pod, assigned: AssignedDevices) -> bool:
    """Whether the kubelet has assigned ``pod`` its units, also where it has lost them since."""
    return assigned.has_units(pod) or assigned.lost_of(pod) is not None


def may_go_on(pod: Pod, assigned: AssignedDevices, unit: NodeUnit) -> bool:
    """Whether ``pod`` is served on a node that takes no new pods: it has units, or was promised some of
    ``unit``, which is in force there."""
    promised = _annotated_unit(pod)
    return is_admitted(pod, assigned) or (promised is not None and promised.meaning in unit.meanings)


def unit_in_force(
    desired: NodeUnit, recorded: NodeUnit | None, held: Iterable[HeldUnit]
) -> tuple[NodeUnit, tuple[str, ...]]:
    """Returns the unit to serve, and the pods, for people, that hold units of it and keep ``desired`` from
    being served.

    ``recorded``: the unit that was served until now. Where that is not known, as after a policy was deleted
    and applied anew, it is taken from the pods' annotations.
    """
    held = list(held)
    served = recorded or most_annotated(held) or desired
    if served.meanings == desired.meanings:
        return desired, ()
    blocking = [pod.pod for pod in held if pod.admitted or (pod.unit and pod.unit.meaning in served.meanings)]
    return (served, tuple(sorted(blocking))) if blocking else (desired, ())


def _annotated_unit(pod: Pod) -> Unit | None:
    return readable_unit(pod.allocation.unit) if pod.allocation else None


def most_annotated(held: list[HeldUnit]) -> Unit | None:
    """Returns the unit of most pods, or None; admitted pods know better than promised ones."""
    admitted = Counter(pod.unit for pod in held if pod.unit and pod.admitted)
    promised = Counter(pod.unit for pod in held if pod.unit)
    ranked = (admitted or promised).most_common(1)
    return ranked[0][0] if ranked else None
