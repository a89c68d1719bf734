"""Row Driver: NVIDIA's driver refuses what goes beyond the limit of a container's cgroup.

The container toolkit's hook ``apply-cuda-memory-limits`` sets the limit before the container starts, by two
variables in the container's environment. Source: NVIDIA's container toolkit 1.20.1.
"""

from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.served import Problem
from gpushare_core.placement.quantity import MIB
from gpushare_plugin.decide.held.checkpoint import ISOLATION_VARIABLE, LIMIT_VARIABLE
from gpushare_plugin.decide.isolation.kind import (
    GrantedMemory,
    IsolatedShare,
    IsolationEquipment,
    IsolationFacts,
    IsolationFinding,
    IsolationKind,
)
from gpushare_plugin.decide.units.quantity_text import quantity_text
from gpushare_plugin.devices.use import NO_LIMIT

REQUEST_VARIABLE = "NVIDIA_GPU_MEMORY_REQUEST"
TOOLKIT_HOOK = "apply-cuda-memory-limits"
"""In a CDI specification that the container toolkit 1.20.1 or newer has written."""
ROUNDING = 2 * MIB
"""Bytes by which a limit may be above the given one: the driver hands out a card's memory in such pages."""
NOT_READ = "the driver was not asked since the container started: wait for the next check"
NOT_KNOWN = "the kubelet's checkpoint does not say which limit it was given"

_ELSE = "or set isolation.memory of the policy to Hook or None"
NOT_NVIDIAS_DRIVER = Problem(
    "NotNVIDIAsDriver", f"NVIDIA's driver alone limits containers: set devices.source to NVML, {_ELSE}"
)
CGROUPS_OF_VERSION_1 = Problem(
    "CgroupsOfVersion1",
    "the driver limits cgroups of version 2, and this node's are of version 1: boot it with"
    f" systemd.unified_cgroup_hierarchy=1, {_ELSE}",
)
TOOLKIT_WITHOUT_HOOK = Problem(
    "ToolkitTooOld",
    f"the node's CDI specification has no hook {TOOLKIT_HOOK}, which sets the limit: install NVIDIA's"
    " container toolkit 1.20.1 or newer and generate the specification again (`nvidia-ctk cdi generate`),"
    f" {_ELSE}",
)


def driver_too_old(version: str) -> Problem:
    found = f"the NVIDIA driver {version}" if version else "the NVIDIA driver"
    return Problem(
        "DriverTooOld",
        f"{found} cannot limit the memory of containers: install one of the branch r615 or newer, {_ELSE}",
    )


def _equipment(granted: GrantedMemory) -> IsolationEquipment:
    """The hook sets one limit for all cards of a container: the smallest share, so that no card gives more.

    The request is 0: units are promised once, and what the driver reserves for a container outlives it.
    """
    limit = min(limit.memory for limit in granted.limits) // MIB
    return IsolationEquipment(
        variables={
            ISOLATION_VARIABLE: MemoryIsolation.DRIVER.value,
            LIMIT_VARIABLE: str(limit),
            REQUEST_VARIABLE: "0",
        }
    )


def _in_force(isolated: IsolatedShare, facts: IsolationFacts) -> IsolationFinding:
    """A lower limit is in force, too: the driver may round it, and a pod may set one for itself."""
    given, driver = isolated.given.memory, facts.driver
    if not given:
        return IsolationFinding(in_force=None, seen=NOT_KNOWN)
    if isolated.share in driver.not_running:
        return IsolationFinding(in_force=True, limit=given)
    limit = driver.read_back.get(isolated.share)
    if limit is None:
        reason = driver.read_problem.message if driver.read_problem else NOT_READ
        return IsolationFinding(in_force=None, seen=reason, limit=given)
    if limit <= given + ROUNDING:
        return IsolationFinding(in_force=True, seen=_smaller_share(isolated), limit=given)
    return IsolationFinding(in_force=False, seen=_difference(given, limit), limit=given)


def _smaller_share(isolated: IsolatedShare) -> str:
    if isolated.memory < isolated.given.memory + MIB:
        return ""
    return (
        f"the driver holds it to {quantity_text(isolated.given.memory)} of a share of"
        f" {quantity_text(isolated.memory)}: a container has one limit for all its cards, that of the"
        " smallest share"
    )


def _difference(given: int, limit: int) -> str:
    if limit == NO_LIMIT:
        return (
            f"the driver has no limit for it, and not {quantity_text(given)} (NVIDIA's container toolkit is"
            f" older than 1.20.1, or the runtime that started it does not call the hook {TOOLKIT_HOOK})"
        )
    return (
        f"the driver holds it to {quantity_text(limit)} and not to {quantity_text(given)} (does the pod set"
        f" {LIMIT_VARIABLE} itself?)"
    )


DRIVER = IsolationKind(
    name=MemoryIsolation.DRIVER,
    unable=lambda facts: facts.driver.problem,
    equipment=_equipment,
    in_force=_in_force,
)
