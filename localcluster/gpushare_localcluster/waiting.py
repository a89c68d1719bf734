"""Waiting for something to become true, with an error that says what was waited for."""

import time
from collections.abc import Callable
from typing import TypeVar

from gpushare_localcluster.errors import LocalClusterError

T = TypeVar("T")


def wait_until(
    what: str,
    probe: Callable[[], T],
    *,
    timeout: float = 240.0,
    interval: float = 0.1,
    explain: Callable[[], str] = lambda: "",
) -> T:
    """Calls `probe` every `interval` seconds and returns its first true result.

    Raises LocalClusterError after `timeout` seconds; the message has `what` and the result of `explain`.
    """
    deadline = time.monotonic() + timeout
    while not (result := probe()):
        if time.monotonic() > deadline:
            raise LocalClusterError(f"{what}: not so after {timeout:g} s. {explain()}".rstrip())
        time.sleep(interval)
    return result
