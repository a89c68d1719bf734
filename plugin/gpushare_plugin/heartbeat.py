"""Signs of life for the watchdog, the process that ends this one when it hangs."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

PERIOD = 3.0
"""Seconds between two signs."""
WATCHDOG_SILENT_AFTER = 15.0
"""Seconds without an answer after which the watchdog counts as hanging."""


@dataclass(frozen=True, slots=True)
class Watchdog:
    """The other process, at the other ends of two pipes."""

    beats: int
    echoes: int

    def __post_init__(self) -> None:
        os.set_blocking(self.beats, False)
        os.set_blocking(self.echoes, False)

    def beat(self) -> None:
        with suppress(OSError):  # the watchdog hangs, and the pipe is full
            os.write(self.beats, b".")

    def has_answered(self) -> bool:
        """Returns whether a sign was answered since the last call."""
        try:
            return bool(os.read(self.echoes, 4096))
        except BlockingIOError:
            return False


@dataclass(slots=True)
class Heartbeat:
    """Shows the watchdog that the event loop turns and that all services answer."""

    watchdog: Watchdog | None
    """None for a plugin that was started without one, as by tests."""
    services: Iterable[Callable[[], Awaitable[bool]]]
    """Each returns whether a service answers as the kubelet would hear it, or is not served now."""
    clock: Callable[[], float]
    """Steady seconds."""
    _heard: float = field(init=False)
    """When the watchdog answered last."""

    def __post_init__(self) -> None:
        self._heard = self.clock()

    async def run(self) -> None:
        while True:
            await self.beat()
            await asyncio.sleep(PERIOD)

    async def beat(self) -> None:
        """Gives a sign if every service answers, and looks for an answer of the watchdog."""
        answers = await asyncio.gather(*(service() for service in self.services))
        if self.watchdog and all(answers):
            self.watchdog.beat()
        if self.watchdog is None or self.watchdog.has_answered():
            self._heard = self.clock()

    def problem(self) -> str:
        """Returns why the watchdog counts as hanging, or an empty text.

        Without a watchdog this plugin would hold up its kubelet the next time it hangs.
        """
        silent = self.clock() - self._heard
        return f"the watchdog answered {silent:.0f} s ago" if silent > WATCHDOG_SILENT_AFTER else ""
