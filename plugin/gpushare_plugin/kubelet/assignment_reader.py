"""Keeps what we know of the kubelet's books up to date, at moments that do no harm."""

import asyncio
import logging
from collections.abc import Callable

from gpushare_plugin.decide.holdings import Books
from gpushare_plugin.kubelet.pod_resources import BooksUnavailableError, PodResources
from gpushare_plugin.state import NodeState

PERIOD = 10.0
"""Seconds between two readings when nothing happens."""
AWAY_PERIOD = 1.0
"""Seconds between two attempts while the kubelet does not answer."""
SETTLE = 0.2
"""Seconds after an Allocate until the kubelet has surely written it down."""
EXPECT = 1.0
"""Seconds for which an Allocate is waited for after GetPreferredAllocation."""
TIMEOUT = 5.0

_log = logging.getLogger(__name__)


class Bookkeeper:
    """Reads PodResources: every ``PERIOD``, after each Allocate, and within GetPreferredAllocation.

    Not in between the two calls for a container: a reading makes the kubelet drop pods that have ended, and
    with them what it has set aside but not written down. Source: ``ManagerImpl.UpdateAllocatedDevices``.
    """

    def __init__(
        self, state: NodeState, resources: PodResources, *, clock: Callable[[], float] | None = None
    ) -> None:
        self._state = state
        self._resources = resources
        self._clock = clock or asyncio.get_running_loop().time
        self._due = asyncio.Event()
        self._quiet_until = 0.0
        self.last_round = self._clock()

    async def run(self) -> None:
        """Never returns, and never fails for what the kubelet does."""
        while True:
            await self._quiet()
            await self.refresh()
            self.last_round = self._clock()
            await self._next()

    async def refresh(self) -> None:
        """Read the books now; when that is not possible go on with the last ones."""
        self._due.clear()
        try:
            self._state.put_books(await self._resources.books(timeout=TIMEOUT))
        except BooksUnavailableError as error:
            level = logging.WARNING if self._state.books_readable else logging.DEBUG  # once, not every time
            _log.log(level, "the kubelet's books cannot be read: %s", error)
            self._state.lose_books()

    async def read_within_call(self, *, timeout: float) -> Books:
        """The books while the kubelet waits for an answer of ours. Raises ``BooksUnavailableError``."""
        books = await self._resources.books(timeout=timeout)
        self._state.put_books(books)
        return books

    def expect_allocation(self) -> None:
        """The kubelet was told which units to take, and will ask for what comes with them."""
        self._quiet_until = self._clock() + EXPECT

    def note_allocation(self) -> None:
        """It asked."""
        self._quiet_until = self._clock() + SETTLE
        self._due.set()

    def wake(self) -> None:
        """Read the books soon: the kubelet may have come back."""
        self._due.set()

    async def _quiet(self) -> None:
        while True:
            left = self._quiet_until - self._clock()
            if left <= 0:
                return
            await asyncio.sleep(left)

    async def _next(self) -> None:
        try:
            async with asyncio.timeout(PERIOD if self._state.books_readable else AWAY_PERIOD):
                await self._due.wait()
        except TimeoutError:
            return
