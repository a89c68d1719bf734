"""The processes of a cluster among those of the host."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process. `namespaced` are its PIDs, from our namespace to the innermost."""

    pid: int
    parent: int
    namespaced: Sequence[int]


def parse_status(text: str) -> Process:
    """Reads /proc/PID/status, see proc_pid_status(5)."""
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    return Process(
        pid=int(fields["Pid"]),
        parent=int(fields["PPid"]),
        namespaced=[int(pid) for pid in fields["NSpid"].split()],
    )


def running(proc: Path = PROC) -> Iterator[Process]:
    """Yields all processes but those that end meanwhile."""
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                yield parse_status((folder / "status").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue


def program(pid: int, proc: Path = PROC) -> str:
    """Returns the name of a process's program, "" if the process has ended."""
    try:
        return Path((proc / str(pid) / "cmdline").read_bytes().split(b"\0")[0].decode()).name
    except (FileNotFoundError, ProcessLookupError):
        return ""


def below(processes: Sequence[Process], ancestor: int) -> Iterator[Process]:
    """Yields all descendants of a process."""
    for process in processes:
        if process.parent == ancestor:
            yield process
            yield from below(processes, process.pid)


def cluster_pid(processes: Sequence[Process], *, supervisor: int) -> int | None:
    """Returns the host's PID of process 1 of the supervisor's cluster, or None."""
    return next((process.pid for process in processes if process.parent == supervisor), None)


def host_pid(processes: Sequence[Process], *, supervisor: int, inner: int) -> int | None:
    """Returns the host's PID of the process that has PID `inner` in the supervisor's cluster, or None."""
    cluster = cluster_pid(processes, supervisor=supervisor)
    return next(
        (
            process.pid
            for process in processes
            if process.parent == cluster and process.namespaced[1:2] == [inner]
        ),
        None,
    )
