"""Reads from PodResources what the kubelet has assigned, at moments that do no harm."""

import asyncio
import logging
from collections.abc import Callable

from gpushare_plugin.decide.allocations import AssignedDevices
from gpushare_plugin.kubelet.pod_resources import PodResources, PodResourcesUnavailableError
from gpushare_plugin.state import NodeState

PERIOD = 10.0
"""Seconds between two readings when nothing happens."""
RETRY_PERIOD = 1.0
"""Seconds between two attempts while the kubelet does not answer."""
ALLOCATE_DEBOUNCE = 0.2
"""Seconds after an Allocate until the kubelet has surely written it down."""
ALLOCATE_EXPECTED = 1.0
"""Seconds for which an Allocate is waited for after GetPreferredAllocation."""
TIMEOUT = 5.0
"""Seconds within which PodResources have to answer."""

_log = logging.getLogger(__name__)


class AssignmentReader:
    """Keeps ``state.assigned``: every ``PERIOD``, after each Allocate, and within GetPreferredAllocation.

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
        """When the last reading ended, successful or not, by the event loop's clock."""

    async def run(self) -> None:
        """Never returns, and never fails for what the kubelet does."""
        while True:
            await self._wait_until_quiet()
            await self.read()
            self.last_round = self._clock()
            await self._wait_until_due()

    async def read(self) -> None:
        """Reads now; where that is not possible what was read last stays."""
        self._due.clear()
        try:
            self._state.put_assigned(await self._resources.assigned_devices(timeout=TIMEOUT))
        except PodResourcesUnavailableError as error:
            available = self._state.pod_resources_available
            level = logging.WARNING if available else logging.DEBUG  # once, not every time
            _log.log(level, "the kubelet's books cannot be read: %s", error)
            self._state.lose_pod_resources()

    async def read_during_call(self, *, timeout: float) -> AssignedDevices:
        """Returns what is assigned while the kubelet waits for an answer of ours.

        Raises:
            PodResourcesUnavailableError: no answer within ``timeout`` seconds.
        """
        assigned = await self._resources.assigned_devices(timeout=timeout)
        self._state.put_assigned(assigned)
        return assigned

    def expect_allocate(self) -> None:
        """GetPreferredAllocation is answered: the kubelet will call Allocate."""
        self._quiet_until = self._clock() + ALLOCATE_EXPECTED

    def note_allocate(self) -> None:
        """The kubelet called Allocate."""
        self._quiet_until = self._clock() + ALLOCATE_DEBOUNCE
        self._due.set()

    def read_soon(self) -> None:
        """Something else happened that may have changed what is assigned."""
        self._due.set()

    async def _wait_until_quiet(self) -> None:
        while True:
            left = self._quiet_until - self._clock()
            if left <= 0:
                return
            await asyncio.sleep(left)

    async def _wait_until_due(self) -> None:
        try:
            async with asyncio.timeout(PERIOD if self._state.pod_resources_available else RETRY_PERIOD):
                await self._due.wait()
        except TimeoutError:
            return
