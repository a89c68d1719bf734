"""Time that passes at once: limits of a minute, which no slow machine exceeds, cost a test nothing."""

import asyncio
import time


def leap(seconds: float) -> None:
    """Moves the clock of the running event loop: every timer of the loop that is due by then is due now.

    Until the loop ends, with the test.
    """
    loop = asyncio.get_running_loop()
    ahead = loop.time() - time.monotonic() + seconds
    loop.time = lambda: time.monotonic() + ahead  # type: ignore[method-assign]
