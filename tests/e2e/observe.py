"""Waiting on a watch: the tests never sleep and never poll where the API server can tell."""

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from chaos.quiet import condition as condition
from chaos.quiet import is_true as is_true

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.follow import Changed, Collection, Listed, follow
from gpushare_core.kube.paths import NODES as NODES
from gpushare_core.kube.paths import POLICIES as POLICIES
from gpushare_core.kube.paths import SHARE_NODES as SHARE_NODES
from gpushare_core.text.json_object import Json as Json
from gpushare_localcluster.cluster import LocalCluster

CALL_SECONDS = 60.0
"""For one call: more than programs of ours wait, as an API server beside others may take that long."""

State = dict[str, Json]
"""``namespace/name`` -> object."""

PODS = "/api/v1/namespaces/{namespace}/pods"
PATIENCE = 240.0
"""Seconds for what promises no time: five clusters start, and are restarted, on two slow cores. Only a test
that fails waits so long."""


def watch_until(
    cluster: LocalCluster,
    path: str,
    holds: Callable[[Sequence[Json]], bool],
    *,
    what: str,
    seconds: float = PATIENCE,
    describe: Callable[[Sequence[Json]], object] = len,
) -> list[Json]:
    """Return the collection at ``path`` as soon as ``holds`` is true of it.

    Fails the test after ``seconds``, saying ``what`` was waited for and what ``describe`` made of the last
    state.
    """
    state: State = {}

    async def run() -> None:
        async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=CALL_SECONDS) as client:
            async for event in follow(client, Collection(path)):
                _keep(state, event)
                if holds(list(state.values())):
                    return

    try:
        asyncio.run(asyncio.wait_for(run(), seconds))
    except TimeoutError:
        raise AssertionError(
            f"{what}: not so after {seconds:g} s; last seen: {describe(list(state.values()))}"
        ) from None
    return list(state.values())


@contextmanager
def versions(cluster: LocalCluster, path: str, name: str) -> Iterator[list[Json]]:
    """Every version of one object from now on, as it is written; the list grows until the block ends."""
    seen: list[Json] = []
    listed = threading.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    done = asyncio.Event()

    async def read() -> None:
        async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=CALL_SECONDS) as client:
            async for event in follow(client, Collection(path, field_selector=f"metadata.name={name}")):
                seen.extend(event.items if isinstance(event, Listed) else [event.item])
                listed.set()

    async def read_until_done() -> None:
        loops.append(asyncio.get_running_loop())
        reading = asyncio.create_task(read())
        await done.wait()
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await asyncio.sleep(0.25)  # aiohttp, "Graceful Shutdown": TLS connections end after the session

    thread = threading.Thread(target=lambda: asyncio.run(read_until_done()))
    thread.start()
    try:
        assert listed.wait(timeout=PATIENCE), f"{path} was not listed within {PATIENCE:g} s"
        yield seen
    finally:
        loops[0].call_soon_threadsafe(done.set)
        thread.join()


def _keep(state: State, event: Listed[Json] | Changed[Json]) -> None:
    if isinstance(event, Listed):
        state.clear()
        state.update({_key(item): item for item in event.items})
    elif event.kind == "DELETED":
        state.pop(_key(event.item), None)
    else:
        state[_key(event.item)] = event.item


def _key(item: Json) -> str:
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def get(cluster: LocalCluster, path: str) -> Json:
    """One object or list, read now."""

    async def run() -> Json:
        async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=CALL_SECONDS) as client:
            return await client.get(path)

    return asyncio.run(run())
