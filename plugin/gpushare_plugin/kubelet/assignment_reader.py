"""Reads from PodResources and checkpoint what the kubelet has assigned, at moments that do no harm."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from itertools import chain

from gpushare_core.kube.backoff import BOOKKEEPING_RETRY, Backoff
from gpushare_plugin.decide.held.allocations import lost_assignments_without_pod, orphans
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import by_pod
from gpushare_plugin.decide.held.foreign_cards import locate
from gpushare_plugin.decide.held.kubelet_restart import with_unshown
from gpushare_plugin.decide.held.lost_assignments import lost_assignments, still_remembered
from gpushare_plugin.decide.held.pod_identity import identify, with_stored
from gpushare_plugin.kubelet.checkpoint import CheckpointFile, CheckpointUnreadableError
from gpushare_plugin.kubelet.pod_resources import PodResources, PodResourcesUnavailableError
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.state import PluginState

PERIOD = 10.0
"""Seconds between two readings when nothing happens."""
RETRY_PERIOD = 1.0
"""Seconds until the kubelet is asked again where it does not answer, has not listed all pods since its start,
or keeps units of a pod that is gone. Then ever less often: some mirrors the API server refuses for ever."""
TIMEOUT = 5.0
"""Seconds within which PodResources have to answer."""

_log = logging.getLogger(__name__)


class AssignmentReader:
    """Keeps ``state.assigned``: reads every ``PERIOD``, after each Allocate, within GetPreferredAllocation.

    It does not read while units are reserved, unless the kubelet asks: a reading makes the kubelet drop pods
    that have ended, and with them what it has set aside and not written down yet. Source:
    ``ManagerImpl.UpdateAllocatedDevices``.
    """

    def __init__(
        self,
        state: PluginState,
        resources: PodResources,
        checkpoint: CheckpointFile,
        *,
        reservations: UnitReservations,
        after_reading: Callable[[], Awaitable[None]],
        clock: Callable[[], float] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        """``after_reading`` is awaited after each reading that is not made within a call of the kubelet's."""
        self._state = state
        self._after_reading = after_reading
        self._resources = resources
        self._checkpoint = checkpoint
        self._clock = clock or asyncio.get_running_loop().time
        self._reservations = reservations
        self._backoff = backoff or Backoff(first=RETRY_PERIOD, most=BOOKKEEPING_RETRY)
        self._due = asyncio.Event()
        self._begun = self._newest = 0
        """How many readings have begun, and the number of the one that is in force."""
        self.last_round = self._clock()
        """When the last reading ended, successful or not, by the event loop's clock."""

    async def run(self) -> None:
        """Never returns, and never fails for what the kubelet does."""
        while True:
            await self.read()
            await self._after_reading()
            self.last_round = self._clock()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.delay()):
                    await self._due.wait()

    async def read(self) -> None:
        """Reads as soon as nothing is reserved; where that is not possible what was read last stays."""
        while True:
            seconds = self._reservations.remaining
            if not seconds:
                break
            await asyncio.sleep(seconds)
        self._due.clear()
        self._state.remember_record()
        number, begun = self._next(), self._clock()
        try:
            self._store(await self._resources.assigned_devices(timeout=TIMEOUT), number, begun=begun)
        except PodResourcesUnavailableError as error:
            if number < self._newest:
                return
            available = self._state.pod_resources_available
            level = logging.WARNING if available else logging.DEBUG  # once, not every time
            _log.log(level, "cannot read which devices are assigned: %s", error)
            stored, state = self._read_checkpoint(), self._state
            if state.assigned.pods:
                stored = with_stored(state.assigned, stored.stored, state.pods)
            state.lose_pod_resources(locate(stored, state.assigned, state.pods, state.dialect_names))

    async def read_during_call(self, *, timeout: float) -> AssignedDevices:
        """Returns what is assigned while the kubelet waits for an answer of ours. Raises
        ``PodResourcesUnavailableError`` where PodResources do not answer within ``timeout`` seconds."""
        number, begun = self._next(), self._clock()
        return self._store(await self._resources.assigned_devices(timeout=timeout), number, begun=begun)

    def is_written_down(self, numbers: Collection[int]) -> bool:
        """Whether the checkpoint has all of ``numbers``, as far as it can be read."""
        if not numbers:
            return True
        found = self._read_checkpoint()
        entries = (entry for containers in found.stored.values() for entry in containers.values())
        return bool(found.checkpoint_problem) or {*numbers}.issubset(
            chain.from_iterable(entry.numbers for entry in entries)
        )

    def read_soon(self) -> None:
        """Something happened that may have changed what is assigned."""
        self._backoff.reset()
        self._due.set()

    def delay(self) -> float:
        """Returns the seconds until the next reading, unless something happens before that."""
        state = self._state
        settled = state.listed_since_restart.complete and not state.assigned.unshown
        unknown = orphans(state.assigned, state.pods) or lost_assignments_without_pod(
            state.assigned, state.pods
        )
        if state.pod_resources_available and settled and not unknown:
            self._backoff.reset()
            return PERIOD
        return self._backoff.next_delay()

    def _next(self) -> int:
        self._begun += 1
        return self._begun

    def _store(self, listed: AssignedDevices, number: int, *, begun: float) -> AssignedDevices:
        """Returns what is known by the reading ``number``, unless a later one was answered earlier.

        The checkpoint is read after the list: the kubelet writes it when it has assigned something.
        """
        self.last_round = self._clock()
        if number < self._newest:
            return self._state.assigned
        self._newest = number
        stored, state, before = self._read_checkpoint(), self._state, self._state.assigned
        entries = [entry for containers in stored.stored.values() for entry in containers.values()]
        known = replace(listed, checkpoint_problem=stored.checkpoint_problem)
        remembered = {name: allocation.pod.kubelet_uid for name, allocation in state.remembered.items()}
        identified = identify(known, entries, before, state.pods, remembered=remembered)
        if listed.kubelet != state.listed_since_restart.kubelet:
            state.remember_assigned()
        known_pods = state.pods if state.pods_known else None
        shown = state.listed_since_restart.after(identified, before, known_pods, now=self._clock())
        every = with_unshown(identified, before, shown, state.pods, stored=stored.stored)
        located = locate(every, before, state.pods, state.dialect_names)
        state.remembered = still_remembered(state.remembered, located, shown, state.pods)
        assigned = replace(located, lost=lost_assignments(state.remembered, located))
        state.put_assigned(assigned, shown)
        self._reservations.put_listed(begun=begun)
        return assigned

    def _read_checkpoint(self) -> AssignedDevices:
        """Also what it says of pods that have ended."""
        try:
            return AssignedDevices(stored=by_pod(self._checkpoint.read(self._state.dialect_names)))
        except CheckpointUnreadableError as error:
            known = str(error) == self._state.assigned.checkpoint_problem
            _log.log(
                logging.DEBUG if known else logging.WARNING, "cannot read the kubelet's checkpoint: %s", error
            )
            return AssignedDevices(checkpoint_problem=str(error))
