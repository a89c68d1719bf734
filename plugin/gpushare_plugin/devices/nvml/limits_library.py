"""The limits on the memory of cgroups by NVML: drivers of the branch r615 and newer have them.

Every call may take for ever: they are made by the library's worker only.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pynvml

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD, driver_problem
from gpushare_plugin.devices.use import NO_LIMIT, CardCgroup, CgroupMemory, MemoryLimits

_FUNCTIONS = ("nvmlDeviceGetMemoryLimits_v1", "nvmlDeviceSetMemoryLimits_v1")
"""The toolkit's hook sets limits by the second one."""
_WITHOUT_LIMIT = frozenset({pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_NOT_SUPPORTED})
"""Answers about a cgroup that has no limit and is in none that has one. Where the kernel has no controller
``dmem``, the driver answers ``NOT_SUPPORTED`` then."""


def nvml_limits(cgroups: Iterable[CardCgroup]) -> MemoryLimits:
    """Returns what the driver says of ``cgroups``. Blocks. The library has to be loaded.

    A cgroup of which the driver says nothing is left out, and so is one that is not there any more.
    """
    version = _driver_version()
    if not all(hasattr(pynvml.nvmlLib, function) for function in _FUNCTIONS):
        return MemoryLimits(version=version, supported=False)
    found: dict[CardCgroup, CgroupMemory] = {}
    problem: Problem | None = None
    for asked in cgroups:
        try:
            memory = _memory(asked)
        except pynvml.NVMLError as error:
            if error.value in NEVER_ONE_CARD:
                return MemoryLimits(version=version, problem=driver_problem(error.value, str(error)))
            problem = _unknown(asked, error) if Path(asked.cgroup).exists() else problem
        else:
            if Path(asked.cgroup).exists():  # a container that has just ended has no limit, and needs none
                found[asked] = memory
    return MemoryLimits(version=version, supported=True, cgroups=found, problem=problem)


def _memory(asked: CardCgroup) -> CgroupMemory:
    handle = pynvml.nvmlDeviceGetHandleByUUID(asked.card)
    limits = pynvml.c_nvmlGetMemoryLimits_v1_t(nameSpace=os.fsencode(asked.cgroup))
    try:
        pynvml.nvmlDeviceGetMemoryLimits_v1(handle, limits)
    except pynvml.NVMLError as error:
        if error.value not in _WITHOUT_LIMIT:
            raise
        return CgroupMemory(limit=NO_LIMIT)
    return CgroupMemory(limit=limits.hardLimit, used=limits.currentUsed)


def _unknown(asked: CardCgroup, error: Any) -> Problem:
    return Problem(
        "LimitsUnknown",
        f"the driver does not say which limit is in force on card {asked.card} for {asked.cgroup}: {error}"
        f" (NVML error {error.value}); try `nvidia-smi memory-limits --get -n {asked.cgroup}` on the node",
    )


def _driver_version() -> str:
    try:
        return str(pynvml.nvmlSystemGetDriverVersion())
    except (pynvml.NVMLError, UnicodeError):  # pynvml decodes what the driver says
        return ""
