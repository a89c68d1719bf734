"""A lock, so that one process builds what all use: two builds would take twice the time and memory."""

import fcntl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Report = Callable[[str], None]
"""Takes a message for people."""


@contextmanager
def locked(path: Path, *, report: Report) -> Iterator[None]:
    """Holds the lock file at `path`; reports when another process has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            report("waiting for another process that builds a part of the local cluster")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
