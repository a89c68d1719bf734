"""Follows this node's pods: their metadata as it changes, their specs once."""

import asyncio
import logging
from collections.abc import Callable, Iterable

import msgspec

from gpushare_core.dialects.dialect import Dialect
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.json_object import Json
from gpushare_core.kube.backoff import BOOKKEEPING_RETRY, Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Changed, Collection, Listed, follow
from gpushare_core.kube.paths import PODS, pod_path
from gpushare_plugin.decide.pods import FINISHED, Pod, PodName, is_bound_to, read_metadata, read_pod
from gpushare_plugin.state import NodeState

CONCURRENT_READS = 8
"""Specs that are read at the same time."""
SPECS_TIMEOUT = 30.0
"""Seconds for reading the specs of all pods that have arrived."""

_log = logging.getLogger(__name__)


class PodWatch:
    """Keeps ``state.pods``.

    Only metadata is watched, because the status of a pod lists every single unit that it holds. Source:
    ``AllocatedResourcesStatus`` of core/v1, on by default since Kubernetes 1.36.
    """

    def __init__(self, state: NodeState, client: KubeClient, *, ended: Callable[[], None]) -> None:
        """``ended`` is called when a pod is gone: its units may be free."""
        self._state = state
        self._ended = ended
        self._client = client
        self._arrived = asyncio.Event()
        self._reads = asyncio.Semaphore(CONCURRENT_READS)
        self.synced = asyncio.Event()

    async def run(self) -> None:
        """Follows the pods' metadata. Never returns."""
        running = ",".join(f"status.phase!={phase}" for phase in FINISHED)
        selector = f"spec.nodeName={self._state.name},{running}"
        pods = Collection(PODS, field_selector=selector, metadata_only=True)
        async for event in follow(self._client, pods, read_one):
            self._handle(event)
            self._arrived.set()

    async def run_spec_reader(self) -> None:
        """Reads the specs of pods as they arrive. Never returns."""
        backoff = Backoff(most=BOOKKEEPING_RETRY)
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            await self.read_specs(self._without_spec(), timeout=SPECS_TIMEOUT)
            self.synced.set()
            if self._without_spec():
                await backoff.wait()
                self._arrived.set()
            else:
                backoff.reset()

    async def read_specs(self, names: Iterable[PodName], *, timeout: float) -> None:
        """Reads these pods into the state, as far as that is possible within ``timeout`` seconds."""
        try:
            async with asyncio.timeout(timeout), asyncio.TaskGroup() as group:
                for name in names:
                    group.create_task(self._read_spec(name))
        except TimeoutError:
            _log.warning("the API server is too slow to tell what the pods of this node ask for")

    def _without_spec(self) -> list[PodName]:
        return [name for name, pod in self._state.pods.items() if pod.request is None]

    def _handle(self, event: Listed[Pod] | Changed[Pod]) -> None:
        if isinstance(event, Listed):
            self._state.put_pods(event.items)
            return
        pod = event.item
        if event.kind == "DELETED":
            self._state.drop_pod(pod.name, pod.uid)
            self._ended()
        else:
            self._state.put_pod(pod)

    async def _read_spec(self, name: PodName) -> None:
        watched = name in self._state.pods
        try:
            async with self._reads:
                item = await self._client.get(pod_path(*name))
        except ApiError as error:
            self._handle_refusal(name, error)
            return
        except UnreachableError as error:
            _log.warning("cannot read what a pod asks for: %s", error, extra={"pod": str(name)})
            return
        if not (watched and name not in self._state.pods):
            self._put(name, item)

    def _put(self, name: PodName, item: Json) -> None:
        try:
            if is_bound_to(item, self._state.name):
                self._state.put_pod(read_pod(item, Dialect.allocation_annotation, RESOURCES))
        except ValueError as error:
            _log.warning("cannot read what a pod asks for: %s", error, extra={"pod": str(name)})

    def _handle_refusal(self, name: PodName, error: ApiError) -> None:
        if not error.is_not_found:
            _log.warning("cannot read what a pod asks for: %s", error, extra={"pod": str(name)})
        elif name in self._state.pods:
            self._state.drop_pod(name, self._state.pods[name].uid)


def read_one(raw: msgspec.Raw | bytes) -> Pod:
    """Returns a pod by its metadata, or raises one of ``UNREADABLE_JSON``."""
    return read_metadata(msgspec.json.decode(raw), Dialect.allocation_annotation)
