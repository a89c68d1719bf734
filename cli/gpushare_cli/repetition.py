"""Runs a command again and again, where nobody watches."""

import random
import signal
import sys
import threading
from collections.abc import Callable

from gpushare_cli.report import ExitStatus
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.process.clock import utc_now


def repeat(run: Callable[[], int], *, every: float, prints_time: bool) -> int:
    """Runs until SIGTERM or SIGINT comes, and prints the time before each run, but not between documents.
    Returns the last exit status.

    Goes on after a run that could not read something.
    """
    stopped = threading.Event()
    status: int = ExitStatus.GOOD
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.is_set():
        if prints_time:
            sys.stdout.write(f"{rfc3339(utc_now())}\n")
        status = run()
        sys.stdout.flush()
        stopped.wait(pause(every))
    return status


def pause(every: float) -> float:
    """Returns seconds, not always the same: thousands that were started together spread out."""
    return every * random.uniform(0.75, 1.25)  # noqa: S311  no secret
