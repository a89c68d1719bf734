"""How fast a core is at the moment: the same virtual machine may be twice as fast an hour later."""

import time
from collections.abc import Callable

ROUNDS = 1_000_000
TRIES = 3


def loop_seconds(*, rounds: int = ROUNDS, clock: Callable[[], float] = time.process_time) -> float:
    """Returns the seconds of CPU that a fixed loop takes, the least of some tries. ``clock``: in seconds."""
    return min(_tried(rounds, clock) for _ in range(TRIES))


def _tried(rounds: int, clock: Callable[[], float]) -> float:
    begun, total = clock(), 0
    for each in range(rounds):
        total += each * each % 7
    return clock() - begun


def sentence(before: float, after: float) -> str:
    """Returns what is printed of the seconds ``before`` and ``after`` the measurements."""
    loop = f"{ROUNDS:,} rounds of a loop in Python"
    return f"A core did {loop} in {1e3 * before:.0f} ms before, and in {1e3 * after:.0f} ms afterwards."
