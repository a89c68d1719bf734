"""What a watch shows is handled a moment later, in order: of two handlers either may be first."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.virtual_time import seconds


@dataclass(slots=True)
class WatchLag:
    """One handler. It is at most ``lag`` seconds behind."""

    dice: random.Random
    lag: float
    _due: deque[tuple[float, Callable[[], object]]] = field(default_factory=deque)
    _added: asyncio.Event = field(default_factory=asyncio.Event)

    def later(self, handle: Callable[[], object]) -> None:
        after = seconds() + self.dice.uniform(0.0, self.lag)
        self._due.append((max(after, self._due[-1][0] if self._due else 0.0), handle))
        self._added.set()

    async def run(self) -> None:
        """Handles for ever, until cancelled."""
        while True:
            while self._due:
                at, handle = self._due[0]
                if at > seconds():
                    await asyncio.sleep(at - seconds())
                self._due.popleft()
                handle()
            self._added.clear()
            await self._added.wait()
