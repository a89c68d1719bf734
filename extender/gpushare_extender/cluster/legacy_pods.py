"""Reads of pods that a replaced system bound what their metadata do not tell: node and request."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient, Request
from gpushare_core.kube.errors import ApiError, UnreachableError, asked_to_wait
from gpushare_core.kube.paths import pod_path
from gpushare_core.placement.requests import PodRequest
from gpushare_extender.decide.pod import KubePod
from gpushare_extender.objects.holder import PodUpdate
from gpushare_extender.objects.legacy_pods import LegacyPod

PARALLEL_READS = 16

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LegacyPodReader:
    """What it has read of a pod never changes, so each is read once."""

    client: KubeClient
    pulse: Callable[[], None] = lambda: None
    """Called while the API server is away. Where it answers and does not tell of a pod, the watch that waits
    for that shows no sign of life: then this process has to start over."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _read: dict[str, tuple[str, PodRequest] | None] = field(default_factory=dict, init=False)
    """Pod UID -> node and request; None where the pod was gone."""

    async def complete_all(self, updates: Iterable[PodUpdate]) -> list[PodUpdate]:
        """Returns ``updates``, all there are, each with what the pod itself says.

        Returns only when the API server has told of every pod: before, units in use would look free.
        """
        present = {update.uid: update for update in updates}
        legacy = [update for update in present.values() if update.legacy]
        self._read = {each.uid: self._read[each.uid] for each in legacy if each.uid in self._read}
        slots = asyncio.Semaphore(PARALLEL_READS)
        completed = await asyncio.gather(*(self._complete_in(slots, update) for update in legacy))
        present.update((update.uid, update) for update in completed)
        return [*present.values()]

    async def complete(self, update: PodUpdate) -> PodUpdate:
        """Returns ``update`` with what the pod itself says, as soon as the API server tells it."""
        legacy = update.legacy
        if legacy is None:
            return update
        if update.uid not in self._read:
            self._read[update.uid] = await self._until_read(legacy)
        known = self._read[update.uid]
        found = replace(legacy, node=known[0], request=known[1]) if known else None
        return PodUpdate(update.uid, update.holder, update.message, found)

    def forget(self, uid: str) -> None:
        self._read.pop(uid, None)

    async def _complete_in(self, slots: asyncio.Semaphore, update: PodUpdate) -> PodUpdate:
        async with slots:
            return await self.complete(update)

    async def _until_read(self, legacy: LegacyPod) -> tuple[str, PodRequest] | None:
        backoff = Backoff(sleep=self.sleep)
        while True:
            try:
                return await self._read_pod(legacy)
            except UnreachableError as error:
                self.pulse()
                problem: Exception = error
            except ApiError as error:
                problem = error
            message = "cannot read a pod of the replaced system, trying again: %s"
            _log.warning(message, problem, extra={"pod": str(legacy.pod)})
            await backoff.wait(asked_to_wait(problem))

    async def _read_pod(self, legacy: LegacyPod) -> tuple[str, PodRequest] | None:
        request = Request(path=pod_path(legacy.pod.namespace, legacy.pod.name))
        try:
            pod = await self.client.read(request, shape=KubePod)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        is_bound = pod.metadata.uid == legacy.pod.uid and pod.spec.node_name
        return (pod.spec.node_name, pod.request(RESOURCES)) if is_bound else None
