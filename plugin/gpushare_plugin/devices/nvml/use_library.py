"""The memory in use by NVML: of each card, and of each process on it.

Every call may take for ever: they are made by the library's worker only.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pynvml

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD, driver_problem
from gpushare_plugin.devices.use import PROCESSES_UNKNOWN, ProcessUse, Use

PROC = Path("/proc")
_OLDER_DRIVER = frozenset(
    {
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
        pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
    }
)
"""Answers to a question in a newer form than the driver knows."""
_COMPUTE = (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2)
_GRAPHICS = (
    pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
    pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
)
"""The forms of each list, the newest first."""


class _ProcessesUnknownError(Exception):
    """The message says why, and what to do."""


def nvml_use(uuids: Iterable[str], *, by_process: bool, proc: Path = PROC) -> Use:
    """Returns what is in use of the cards ``uuids``. Blocks. The library has to be loaded.

    A card that NVML gives no answer about is left out, and so is a process that has gone. ``proc``: the
    folder in which processes are looked up.
    """
    cards: dict[str, int] = {}
    processes: list[ProcessUse] = []
    problem: Problem | None = None
    for uuid in uuids:
        try:
            handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            cards[uuid] = _used(handle)
            processes += _processes(uuid, handle, proc) if by_process else ()
        except _ProcessesUnknownError as error:
            problem = Problem(PROCESSES_UNKNOWN, f"card {uuid}: {error}")
        except pynvml.NVMLError as error:
            if error.value in NEVER_ONE_CARD:
                return Use(problem=driver_problem(error.value, str(error)))
            cards.pop(uuid, None)
    return Use(cards=cards, processes=processes, problem=problem)


def _used(handle: Any) -> int:
    """Returns the bytes that are allocated; with older drivers those that the driver reserves, too."""
    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used)
    except pynvml.NVMLError as error:
        if error.value not in _OLDER_DRIVER:
            raise
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


def _processes(uuid: str, handle: Any, proc: Path) -> Iterator[ProcessUse]:
    """Yields each process once: it may both compute and draw."""
    computing = _listed(handle, _COMPUTE)
    if computing is None:
        raise _ProcessesUnknownError(
            "its driver cannot list processes: set plugin.measurement.scope to Cards, or upgrade the driver"
        )
    used: dict[int, int] = {}
    for process in (*computing, *(_listed(handle, _GRAPHICS) or ())):
        if process.usedGpuMemory is None:
            raise _ProcessesUnknownError("the driver lists its processes without what each of them uses")
        used[process.pid] = max(used.get(process.pid, 0), process.usedGpuMemory)
    for pid, size in used.items():
        yield ProcessUse(card=uuid, used=size, cgroup=_cgroup(pid, proc))


def _listed(handle: Any, forms: Sequence[Callable[[Any], Sequence[Any]]]) -> Sequence[Any] | None:
    """Returns None where the driver has no such list."""
    for form in forms:
        try:
            return form(handle)
        except pynvml.NVMLError as error:
            if error.value == pynvml.NVML_ERROR_NO_PERMISSION:
                raise _ProcessesUnknownError(
                    "the driver does not let the plugin list its processes: does anything confine its pod?"
                ) from error
            if error.value not in _OLDER_DRIVER:
                raise
    return None


def _cgroup(pid: int, proc: Path) -> str:
    """Raises ``_ProcessesUnknownError`` where reading it is forbidden; a process that is gone has none."""
    try:
        return (proc / str(pid) / "cgroup").read_text(errors="replace")
    except PermissionError as error:
        raise _ProcessesUnknownError(
            f"the plugin may not look at processes ({error}): does SELinux or AppArmor confine its pod?"
        ) from error
    except OSError:
        return ""
