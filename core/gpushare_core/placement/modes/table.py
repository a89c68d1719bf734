"""The modes of sharing, one row each, and why a pod fits no node, or not one, for its resources alone."""

from collections.abc import Iterable
from functools import lru_cache

from gpushare_core.placement.modes.exclusive import ExclusiveMode
from gpushare_core.placement.modes.memory import MemoryMode
from gpushare_core.placement.modes.mixed import MixedMode
from gpushare_core.placement.modes.sharing_mode import NodeMode, SharingMode
from gpushare_core.placement.modes.slices import SlicesMode
from gpushare_core.placement.requests import PodRequest, ResourceClass, ResourceRequest
from gpushare_core.placement.units import NodeUnit, UnitFields, parse_node_unit

MEMORY, SLICES, EXCLUSIVE = MemoryMode(), SlicesMode(), ExclusiveMode()

MODES: dict[str, SharingMode] = {mode.name: mode for mode in (MEMORY, SLICES, EXCLUSIVE)}
"""The ways of sharing, by the name that the API has for them."""

NODE_MODES: dict[str, NodeMode] = {
    mode.name: mode for mode in (*MODES.values(), MixedMode(MEMORY, SLICES, EXCLUSIVE))
}
"""What a node can be shared in, by the name that the API has for it."""

MAX_UNITS = 65_536
"""Units that a pod may have. Since 1.36 the kubelet lists each unit in the pod's status, in 44 bytes, and the
API server takes no write of more than 3 MiB: with more units it would not hear that the pod runs, or has
ended. The rest of the 3 MiB is for the rest of the status. Source: ``UpdateAllocatedResourcesStatus`` of
``k8s.io/kubernetes/pkg/kubelet/cm/devicemanager``."""

_BY_RESOURCE = {mode.resource: mode for mode in MODES.values()}


def mode_serving(resource: ResourceClass) -> SharingMode:
    return _BY_RESOURCE[resource]


def mode_dividing(unit: NodeUnit) -> NodeMode:
    """Returns the mode in which cards are divided into ``unit``."""
    classes = tuple(part.resource for part in unit.parts)
    return next(mode for mode in NODE_MODES.values() if tuple(way.resource for way in mode.served) == classes)


def unit_asked_for(mode: str, fields: UnitFields) -> NodeUnit | None:
    """Returns what cards of a node in ``mode`` are to be divided into; None where the mode is unknown, or
    ``fields`` name no unit."""
    try:
        return NODE_MODES[mode].unit(fields) if mode in NODE_MODES else None
    except ValueError:
        return None


@lru_cache(maxsize=256)
def unit_to_come(mode: str, fields: UnitFields, in_force: str) -> NodeUnit | None:
    """Returns what cards are to be divided into, where another unit is ``in_force`` (as a status writes it);
    None elsewhere, and where one of the two is unknown. A whole cluster has few different ones."""
    asked = unit_asked_for(mode, fields)
    try:
        is_same = asked is None or asked.meanings == parse_node_unit(in_force).meanings
    except ValueError:
        return None
    return None if is_same else asked


def class_of_lock(lock: str) -> ResourceClass | None:
    """Returns the class of a card with this ``lock``, as a status writes it; None for a card without one."""
    return MODES[lock].resource if lock in MODES else None


def other_resource_reason(asked: str, served: Iterable[str]) -> str:
    return f"node(s) that serve {' and '.join(served)}, and the pod asks for {asked}"


def several_resources_reason(asked_for: Iterable[ResourceRequest]) -> str:
    asked = " and ".join(request.name for request in asked_for)
    return f"the pod asks for {asked} together: only mode Mixed allows that"


def unservable_reason(request: PodRequest) -> str:
    """Returns for people why a pod fits no node, whatever is free there; empty where it may fit one."""
    return crowded_container_reason(request) or too_many_units_reason(request)


def too_many_units_reason(request: PodRequest) -> str:
    """Returns for people why a pod with more than ``MAX_UNITS`` fits nowhere; empty for all others."""
    if request.total <= MAX_UNITS:
        return ""
    return (
        f"the pod asks for {request.total} units, but a pod may have at most {MAX_UNITS}: the kubelet lists"
        f" every unit in the pod's status, and the API server refuses a longer list; ask for fewer, or set a"
        " larger memoryUnit in the policy"
    )


def crowded_container_reason(request: PodRequest) -> str:
    """Returns for people why a pod fits nowhere: a container asks for several resources, and the kubelet
    would give it the environment of one of them only. Empty where no container does."""
    for container in request.crowded_containers:
        asked = " and ".join(part.name for part in request.resources if container in part.containers)
        return (
            f"container {container} asks for {asked} together: ask for each of them in a container of its own"
        )
    return ""
