"""A moment by which something has to be over, for what nearly always is over long before."""

import asyncio
from collections.abc import Callable


class Deadline:
    """Calls ``passed`` when its moment has come. Putting the moment off costs next to nothing: a timer of
    asyncio stays where it is, and looks again when it goes off."""

    def __init__(self, passed: Callable[[], None]) -> None:
        self._passed = passed
        self.due: float | None = None
        """By the event loop's clock; None: never. For reading only."""
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """It is so many seconds from now, whatever it was."""
        loop = asyncio.get_running_loop()
        due = self.due = loop.time() + seconds
        if self._timer and self._timer.when() > due:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(due, self._look)

    def clear(self) -> None:
        """There is none."""
        self.due = None

    def close(self) -> None:
        """There never will be one."""
        self.due = None
        if self._timer:
            self._timer.cancel()
        self._timer = None

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        timer, self._timer = self._timer, None
        if self.due is None or timer is None:
            return
        if self.due > timer.when():
            self._timer = loop.call_at(self.due, self._look)
        else:
            self.due = None
            self._passed()
