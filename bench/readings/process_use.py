"""What a process has used, out of the texts that /proc has of it."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
FIELDS = 13
"""After the name, up to the time in the kernel."""
_OF_PROCESS = 2
"""``CPUCLOCK_SCHED``. Source: ``clock_getcpuclockid`` of glibc."""


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """Seconds of processor since its start, all threads; MiB resident now, and at most."""

    cpu: float
    resident: float
    peak: float


def mebibytes(status: str, field: str) -> float:
    """Returns the MiB that ``field`` has in ``status``, the text of ``/proc/<pid>/status``."""
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return int(fields[field].split()[0]) / 1024


def cpu_seconds(stat: str) -> float:
    """Returns the seconds that ``/proc/<pid>/stat`` counts: in user mode and in the kernel.

    Raises ``ValueError`` where that says nothing: the process has ended.
    """
    words = stat.rpartition(")")[2].split()  # the name before may have blanks
    if len(words) < FIELDS:
        raise ValueError(f"the process has ended: {stat!r}")
    return (int(words[11]) + int(words[12])) / TICKS


def parsed(stat: str, status: str) -> ProcessUse:
    return ProcessUse(cpu_seconds(stat), mebibytes(status, "VmRSS"), mebibytes(status, "VmHWM"))


def of_process(pid: int, *, proc: Path = Path("/proc")) -> ProcessUse:
    """Raises ``OSError`` when it has ended."""
    folder = proc / str(pid)
    return parsed((folder / "stat").read_text(), (folder / "status").read_text())


def exact_cpu(pid: int) -> float:
    """Returns the seconds of processor since the start of a process, all threads, to the nanosecond: in /proc
    they are steps of 10 ms, and of a process that hardly does anything that is none or too much.

    Raises ``OSError`` when it has ended.
    """
    return time.clock_gettime(~pid << 3 | _OF_PROCESS)


def reset_peak(pid: int, *, proc: Path = Path("/proc")) -> None:
    """Has the peak of a process begin anew at what is resident now. Raises ``OSError`` when it has ended."""
    (proc / str(pid) / "clear_refs").write_text("5")


def only_child(pid: int, *, proc: Path = Path("/proc")) -> int:
    """Returns the process that ``pid`` watches over: that one does the work."""
    (child,) = (proc / str(pid) / "task" / str(pid) / "children").read_text().split()
    return int(child)
