"""How much of the processors each program takes: of those that this process started, with the cluster's."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.readings.process_use import cpu_seconds

from gpushare_localcluster.processes import PROC, below, running


@dataclass(frozen=True, slots=True)
class ProgramUse:
    """Of one process. ``cpu``: seconds since its start, all threads."""

    name: str
    cpu: float


Reading = Mapping[int, ProgramUse]
"""By process."""


def read(proc: Path = PROC, *, ancestor: int | None = None) -> Reading:
    """Returns the use of all processes below ``ancestor``; below this one where it is None."""
    found = {}
    for process in below(list(running(proc)), ancestor or os.getpid()):
        folder = proc / str(process.pid)
        try:
            name = name_of((folder / "cmdline").read_bytes())
            found[process.pid] = ProgramUse(name, cpu_seconds((folder / "stat").read_text()))
        except (OSError, ValueError):  # it has ended
            continue
    return found


def name_of(command_line: bytes) -> str:
    """Returns the program's name; of an interpreter that of its script."""
    words = [Path(word.decode(errors="replace")).name for word in command_line.split(b"\0") if word]
    scripts = [word for word in words[1:] if not word.startswith("-")]
    is_interpreter = bool(words) and words[0].startswith("python")
    return scripts[0] if is_interpreter and scripts else (words or [""])[0]


def between(before: Reading, after: Reading) -> dict[str, float]:
    """Returns the seconds by program; of a process that has ended meanwhile nothing."""
    taken = dict[str, float]()
    for pid, use in after.items():
        begun = before[pid].cpu if pid in before else 0.0
        taken[use.name] = taken.get(use.name, 0.0) + use.cpu - begun
    return taken
