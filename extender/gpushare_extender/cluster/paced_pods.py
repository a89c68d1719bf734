"""Reading pods of the whole cluster now and then, at a pace that costs the API server little."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Clock
from gpushare_core.kube.paths import PODS
from gpushare_core.text.json_object import Json

LOOK_SECONDS = 20.0
"""Between two looks."""
MAX_SECONDS = 600.0
"""The same, where looking takes the API server long: of hundreds of thousands of pods it finds those that
match one by one, and each extender asks."""
REST = 100.0
"""So many times as long as the first answer took, or the failure, nobody asks again."""
PAGE, PAGE_SECONDS = 100, 1.0
"""So many pods are read at once, and so long nothing is read then: there can be tens of thousands."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PacedPods:
    """Pods that ``field_selector`` selects."""

    client: KubeClient
    field_selector: str = ""
    clock: Clock = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    pause: float = field(default=LOOK_SECONDS, init=False)
    """Seconds until the next look."""

    async def keep_looking(self, look: Callable[[], Awaitable[None]], purpose: str) -> None:
        """Looks again and again; never returns."""
        while True:
            await self.sleep(self.pause)
            try:
                await look()
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot see %s: %s", purpose, error)

    async def pages(self) -> AsyncIterator[list[Json]]:
        """Yields all pods, some at a time. Raises ``ApiError`` or ``UnreachableError``."""
        begun, self.pause = self.clock(), 0.0
        try:
            async for page in self.client.pages(PODS, limit=PAGE, field_selector=self.field_selector):
                self.pause = self.pause or self._rest(begun)
                yield page.items
                await self.sleep(PAGE_SECONDS)
        finally:
            self.pause = self.pause or self._rest(begun)  # a failure is no reason to ask again at once

    def _rest(self, begun: float) -> float:
        return min(max(LOOK_SECONDS, REST * (self.clock() - begun)), MAX_SECONDS)
