"""The modes of sharing, one row each, and why a pod does not fit a node for its mode alone."""

from collections.abc import Iterable

from gpushare_core.placement.exclusive_mode import ExclusiveMode
from gpushare_core.placement.memory_mode import MemoryMode
from gpushare_core.placement.requests import PodRequest, ResourceClass
from gpushare_core.placement.sharing_mode import SharingMode
from gpushare_core.placement.slices_mode import SlicesMode

MEMORY = MemoryMode()

MODES: dict[str, SharingMode] = {mode.name: mode for mode in (MEMORY, SlicesMode(), ExclusiveMode())}
"""By the name that the API has for them."""

_BY_RESOURCE = {mode.resource: mode for mode in MODES.values()}


def mode_serving(resource: ResourceClass) -> SharingMode:
    """Returns the mode in which a node serves ``resource``."""
    return _BY_RESOURCE[resource]


def other_resource_reason(asked: str, served: Iterable[str]) -> str:
    """Returns for people why a pod that asks for ``asked`` fits no node that serves ``served``."""
    return f"the pod asks for {asked}, and this node serves {' and '.join(served)}"


def several_resources_reason(request: PodRequest) -> str:
    """Returns for people why a pod that asks for several resources fits nowhere."""
    asked = " and ".join(each.name for each in request.resources)
    return f"the pod asks for {asked} together: only mode Mixed allows that"
