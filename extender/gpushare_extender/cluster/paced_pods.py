"""Reads pods of the whole cluster now and then, at a pace that costs the API server little."""

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
"""The same, where the API server takes long: it goes through hundreds of thousands of pods one by one for
those that match, for every extender."""
REST = 100.0
"""The pause is so many times as long as the first response, or the failure, took."""
PAGE, PAGE_SECONDS = 100, 1.0
"""Pods that are read at once, and seconds until the next ones: there can be tens of thousands."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class PacedPods:
    """Reads pods in pages, with pauses in between."""

    client: KubeClient
    clock: Clock = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    pause: float = field(default=LOOK_SECONDS, init=False)
    """Seconds until the next look."""

    async def keep_looking(self, look: Callable[[], Awaitable[None]], purpose: str) -> None:
        """Never returns. ``purpose`` ends the sentence ``cannot see ...`` of a warning."""
        while True:
            await self.sleep(self.pause)
            try:
                await look()
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot see %s: %s", purpose, error)

    async def pages(self, field_selector: str) -> AsyncIterator[list[Json]]:
        """Yields the selected pods, ``PAGE`` at a time. Raises ``ApiError`` or ``UnreachableError``."""
        begun, self.pause = self.clock(), 0.0
        try:
            async for page in self.client.pages(PODS, limit=PAGE, field_selector=field_selector):
                self.pause = self.pause or self._rest(begun)
                yield page.items
                await self.sleep(PAGE_SECONDS)
        finally:
            self.pause = self.pause or self._rest(begun)  # after a failure, too

    def _rest(self, begun: float) -> float:
        return min(max(LOOK_SECONDS, REST * (self.clock() - begun)), MAX_SECONDS)
