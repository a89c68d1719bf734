"""Follows this node's pods: their metadata as it changes, their specs once."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.kube.backoff import BOOKKEEPING_RETRY, Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Changed, Collection, Listed, follow
from gpushare_core.kube.paths import PODS, pod_path
from gpushare_plugin.decide.held.allocations import lost_assignments_without_pod
from gpushare_plugin.decide.held.pods import (
    FINISHED,
    Pod,
    PodName,
    is_bound_to,
    read_metadata,
    read_pod,
)
from gpushare_plugin.state import PluginState

CONCURRENT_READS = 8
UNDER_WAY_TIMEOUT = 0.5
"""Seconds for which a read under way is waited for: its connection may be dead."""
KILLED_AFTER = 10.0
"""Seconds for which an ended pod holds what its kubelet has lost. A kubelet says that a pod has ended when
no container of it can run; others who write so may be earlier, and the kubelet kills its containers by its
next cleanup, 2 s later. Source: ``status.manager.mergePodStatus``, ``Kubelet.HandlePodCleanups``."""
SPECS_TIMEOUT = 30.0
"""Seconds for reading the specs of all pods that have arrived."""

_log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _PodRead:
    known: Pod | None = None
    """The pod that had the name when the read began."""
    ended: set[str] = field(default_factory=set)
    """UIDs of pods that have gone since."""


class PodWatch:
    """Keeps ``state.pods``.

    Only metadata is watched, because the status of a pod lists every single unit that it holds. Source:
    ``AllocatedResourcesStatus`` of core/v1, on by default since Kubernetes 1.36.
    """

    def __init__(self, state: PluginState, client: KubeClient, *, ended: Callable[[], None]) -> None:
        """``ended`` is called when a pod has gone: its units may be free."""
        self._state = state
        self._ended = ended
        self._client = client
        self._arrived = asyncio.Event()
        self._reads = asyncio.Semaphore(CONCURRENT_READS)
        self._reads_of_lost = asyncio.Semaphore(CONCURRENT_READS // 2)
        """So that a pod that is being admitted finds room beside them."""
        self._under_way: dict[PodName, asyncio.Event] = {}
        """Pods that are being read -> set when the read is over."""
        self._pod_reads: list[_PodRead] = []
        self._ended_at: dict[tuple[str, str], float] = {}
        """A kubelet's process and the UID of an ended pod whose units it seems to have lost -> when both were
        first seen."""
        self.synced = asyncio.Event()

    async def run(self) -> None:
        running = ",".join(f"status.phase!={phase}" for phase in FINISHED)
        selector = f"spec.nodeName={self._state.name},{running}"
        pods = Collection(PODS, field_selector=selector, metadata_only=True)
        async for event in follow(self._client, pods, read_one):
            self._handle(event)
            self._arrived.set()

    async def run_spec_reader(self) -> None:
        backoff = Backoff(most=BOOKKEEPING_RETRY)
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self.read_specs(self._without_spec(), timeout=SPECS_TIMEOUT)
            self.synced.set()
            if self._without_spec():
                await backoff.wait(self._client.asked_to_wait)
                self._arrived.set()
            else:
                backoff.reset()

    async def read_specs(self, names: Iterable[PodName], *, timeout: float) -> None:
        """Reads these pods into the state, as far as that is possible within ``timeout`` seconds.

        A pod that is being read is not read twice: watch and kubelet name a new pod at the same time.
        """
        await self._read_all(map(self._read_unless_under_way, names), timeout)

    async def read_specs_anew(self, names: Iterable[PodName], *, timeout: float) -> None:
        """As ``read_specs``, also of pods that are being read: whether they run may just have changed."""
        await self._read_all(map(self._read_spec, names), timeout)

    async def _read_all(self, readings: Iterable[Coroutine[None, None, None]], timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout), asyncio.TaskGroup() as group:
                for reading in readings:
                    group.create_task(reading)
        except TimeoutError:
            _log.warning("the API server is too slow: cannot read what all pods of this node ask for")

    async def _read_unless_under_way(self, name: PodName) -> None:
        if under_way := self._under_way.get(name):
            with suppress(TimeoutError):
                async with asyncio.timeout(UNDER_WAY_TIMEOUT):
                    await under_way.wait()
            pod = self._state.pods.get(name)
            if pod and pod.request is not None and not pod.deleting:  # else another one may have its name
                return
        await self._read_spec(name)

    async def forget_ended(self, *, timeout: float) -> None:
        """Forgets what ended pods had, of which as many are read as is possible within ``timeout`` seconds.

        Kubelets before 1.34 list ended pods without units, just like pods whose units they have lost while
        containers run. Source: ``v1PodResourcesServer.List`` (1.33).
        """
        state = self._state
        state.note_listed_ended()
        if not state.pod_resources_available:  # nobody may be there who kills the containers
            self._ended_at = {}
            return
        lost = lost_assignments_without_pod(state.assigned, state.pods)
        await self._read_all((self._read_lost(known.pod.name) for known in lost), timeout)
        ended = {
            (state.assigned.kubelet, known.pod.uid): known for known in lost if self._has_ended(known.pod)
        }
        now = asyncio.get_running_loop().time()
        self._ended_at = {key: self._ended_at.get(key, now) for key in ended}
        since = now - KILLED_AFTER
        state.forget_lost([ended[key] for key, at in self._ended_at.items() if at <= since])

    async def _read_lost(self, name: PodName) -> None:
        async with self._reads_of_lost:
            await self._read_unless_under_way(name)

    def _has_ended(self, pod: Pod) -> bool:
        ended = self._state.ended.get(pod.name)
        return ended is not None and ended.uid == pod.uid

    def _without_spec(self) -> list[PodName]:
        return [name for name, pod in self._state.pods.items() if pod.request is None]

    def _handle(self, event: Listed[Pod] | Changed[Pod]) -> None:
        if isinstance(event, Listed):
            listed = {pod.uid for pod in event.items}
            for pod in [pod for pod in self._state.pods.values() if pod.uid not in listed]:
                self._drop(pod)
            self._state.put_pods(event.items)
            return
        pod = event.item
        if event.kind == "DELETED":
            self._drop(pod)
            self._ended()
        else:
            self._state.put_pod(pod)

    def _drop(self, pod: Pod) -> None:
        """A read under way may be answered with the pod as it was."""
        for read in self._pod_reads:
            read.ended.add(pod.uid)
        self._state.drop_pod(pod.name, pod.uid)

    async def _read_spec(self, name: PodName) -> None:
        self._under_way[name] = over = asyncio.Event()
        try:
            await self._read_into_state(name)
        finally:
            over.set()
            if self._under_way.get(name) is over:
                del self._under_way[name]

    def _put(self, pod: Pod, read: _PodRead) -> None:
        if pod.ended:
            self._state.put_ended(pod)
        elif pod.uid not in read.ended:
            self._state.put_pod(pod)

    async def _read_into_state(self, name: PodName) -> None:
        read, is_answered = _PodRead(), False
        self._pod_reads.append(read)
        try:
            async with self._reads:
                read.known = self._state.pods.get(name)
                item = await self._client.get(pod_path(*name))
            is_answered = True
            self._state.ended.pop(name, None)
            if is_bound_to(item, self._state.name):
                self._put(read_pod(item, Dialect.allocation_annotation, RESOURCES), read)
        except (ApiError, UnreachableError, ValueError) as error:
            if not (isinstance(error, ApiError) and error.is_not_found):
                _log.warning("cannot read what a pod asks for: %s", error, extra={"pod": str(name)})
            elif read.known is not None:  # and not a pod that has got the name since
                self._drop(read.known)
        finally:
            self._pod_reads.remove(read)
            if not is_answered:  # another pod may have the name by now
                self._state.ended.pop(name, None)


def read_one(raw: msgspec.Raw | bytes) -> Pod:
    """Returns a pod by its metadata. Raises one of ``UNREADABLE_JSON``."""
    return read_metadata(msgspec.json.decode(raw), Dialect.allocation_annotation)
