"""Reads the node and the request of pods that a replaced system bound, which their metadata do not tell."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field, replace

from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError, asked_to_wait
from gpushare_core.kube.paths import pod_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.placement.requests import PodRequest
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.legacy_pods import LegacyPod
from gpushare_core.scheduling.objects.pod import KubePod

PARALLEL_READS = 16

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class LegacyPodReader:
    """Reads each pod once, as its node and request never change."""

    client: KubeClient
    pulse: Callable[[], None] = lambda: None
    """Called while the API server is unreachable. It is not called when the API server responds but does not
    return a pod: the watch that waits for it then counts as stuck, and this process is restarted."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _read: dict[str, tuple[str, PodRequest] | None] = field(default_factory=dict, init=False)
    """Pod UID -> node and request; None where the pod was gone."""

    async def complete_all(self, updates: Iterable[PodUpdate]) -> list[PodUpdate]:
        """Completes ``updates``, which are those of all pods.

        Returns only after the API server has returned every pod: before, units in use would look free.
        """
        present = {update.uid: update for update in updates}
        legacy = [update for update in present.values() if update.legacy]
        self._read = {update.uid: self._read[update.uid] for update in legacy if update.uid in self._read}
        slots = asyncio.Semaphore(PARALLEL_READS)
        completed = await asyncio.gather(*(self._complete_in(slots, update) for update in legacy))
        present.update((update.uid, update) for update in completed)
        return [*present.values()]

    async def complete(self, update: PodUpdate) -> PodUpdate:
        """Returns ``update`` with the pod's node and request, once the API server has returned the pod."""
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
        request = ApiRequest(path=pod_path(legacy.pod.namespace, legacy.pod.name))
        try:
            pod = await self.client.read(request, shape=KubePod)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        is_bound = pod.metadata.uid == legacy.pod.uid and pod.spec.node_name
        return (pod.spec.node_name, pod.request(RESOURCES)) if is_bound else None
