"""The watches against a fake API server: what they say of themselves, and what a defect of ours leads to."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from tests.component.operator.test_app import SECONDS
from tests.fakes.operator_cluster import NAMESPACE, Cluster
from tests.fakes.operator_server import Server, serving

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.kinds import KINDS
from gpushare_operator.cluster.watches import Watches


@asynccontextmanager
async def running(cluster: Cluster, folder: Path, watches: Watches) -> AsyncIterator[Server]:
    server = Server(cluster.api)
    async with (
        serving(server, folder) as kubeconfig,
        KubeClient(from_kubeconfig(kubeconfig)) as watches.client,
    ):
        task = asyncio.create_task(watches.run())
        try:
            await asyncio.wait_for(watches.until_read(), SECONDS)
            yield server
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def made(clock: list[float]) -> Watches:
    nowhere: KubeClient = None  # type: ignore[assignment]
    return Watches(nowhere, Cache(), NAMESPACE, changed=lambda: None, clock=lambda: clock[0])


async def test_the_silence_is_that_of_the_watch_which_is_silent_longest(tmp_path: Path) -> None:
    clock = [100.0]
    watches = made(clock)
    assert watches.silence == 0.0, "before they run"
    cluster = Cluster()
    async with running(cluster, tmp_path, watches):
        clock[0] = 150.0
        changed = asyncio.Event()
        watches.changed = changed.set
        cluster.add_node("gpu-1")
        await asyncio.wait_for(changed.wait(), SECONDS)
        assert watches.silence == 50.0


async def test_a_defect_at_one_object_ends_no_watch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    watches, cluster, seen = made([0.0]), Cluster(), asyncio.Event()
    failures = [RuntimeError("a defect")]

    def changed() -> None:
        if failures:
            raise failures.pop()
        seen.set()

    cluster.add_node("gpu-1")
    watches.changed = changed
    async with running(cluster, tmp_path, watches):
        cluster.add_node("gpu-2")
        await asyncio.wait_for(seen.wait(), SECONDS)
        assert set(watches.cache.snapshot().nodes) == {"gpu-1", "gpu-2"}
    assert "the watch of nodes failed, starting it again" in caplog.text


async def test_after_etcd_was_restored_from_a_backup_the_operator_sees_what_there_is(tmp_path: Path) -> None:
    """Until it was restarted it planned for a cluster that was no more."""
    watches, cluster = made([0.0]), Cluster()
    cluster.api.restore(1000)
    cluster.add_node("gpu-1", is_of="lost")
    cluster.add_node("gpu-2")
    async with running(cluster, tmp_path, watches) as server:
        del cluster.api.of(paths.NODES)["gpu-2"]
        cluster.api.of(paths.NODES)["gpu-1"]["metadata"]["labels"] = {"is-of": "backup"}
        await until(lambda: server.open_watches == len(KINDS))
        server.restore(500)
        await until(lambda: set(watches.cache.snapshot().nodes) == {"gpu-1"})
        assert watches.cache.snapshot().nodes["gpu-1"].labels == {"is-of": "backup"}
        cluster.add_node("gpu-3")
        await until(lambda: set(watches.cache.snapshot().nodes) == {"gpu-1", "gpu-3"})
        cluster.api.remove(paths.NODES, "gpu-1")
        await until(lambda: set(watches.cache.snapshot().nodes) == {"gpu-3"})


async def until(holds: Callable[[], bool]) -> None:
    for _ in range(int(SECONDS / 0.01)):
        if holds():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come about in time")
