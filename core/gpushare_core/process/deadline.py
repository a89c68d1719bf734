"""A deadline that is cheap to move, for what nearly always ends long before it."""

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls ``passed`` at the deadline. Moving the deadline later costs next to nothing: the asyncio timer
    stays, and is set again when it fires too early."""

    def __init__(self, passed: Callable[[], None]) -> None:
        self._passed = passed
        self.due: float | None = None
        """By the event loop's clock; None without a deadline. For reading only."""
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Moves the deadline to so many seconds from now."""
        loop = asyncio.get_running_loop()
        due = self.due = loop.time() + seconds
        if self._timer and self._timer.when() > due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(due, self._fire)

    def clear(self) -> None:
        """Removes the deadline; ``set`` may give another one."""
        self.due = None

    def close(self) -> None:
        """Removes the deadline and its timer, for good."""
        self.due = None
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _fire(self) -> None:
        loop = asyncio.get_running_loop()
        timer, self._timer = self._timer, None
        if self.due is None or timer is None:
            return
        if self.due > timer.when():
            self._timer = loop.call_at(self.due, self._fire)
        else:
            self.due = None
            self._passed()
