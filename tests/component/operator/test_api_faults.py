"""The whole process while the API server refuses or breaks what it reads: it serves again soon after.

The faults are the proxy's, between the operator and a fake API server.
"""

import asyncio
import itertools
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import yaml
from aiohttp import ClientSession
from chaos.proxy.fault import ApiFault, Manner
from chaos.proxy.server import ApiProxy
from tests.component.operator.test_app import CARDS, SECONDS, is_ready, made, options, until
from tests.fakes.operator_cluster import Cluster
from tests.fakes.operator_server import Server, kubeconfig_for, serving

from gpushare_core.kube import paths
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_operator.cluster.kinds import KINDS
from gpushare_operator.main import serve

LASTS = 1.5
"""Seconds of a fault."""
MOST_TRIES = 12
"""Calls for each kind in that time: a watch and a list for each delay of 0.1 s, 0.2 s, 0.4 s and so on."""


def refused(status: int, *verbs: str) -> ApiFault:
    return ApiFault(manner=Manner.STATUS, verbs=verbs, status=status)


def within_watches(status: int) -> ApiFault:
    return ApiFault(manner=Manner.EXPIRED, status=status)


def on_reads(manner: Manner) -> ApiFault:
    return ApiFault(manner=manner, verbs=("list", "watch"))


FAULTS = [
    *(
        pytest.param(refused(status, *verbs), id=f"{status} on {' and '.join(verbs)}")
        for status in (403, 404, 410, 429, 500, 503)
        for verbs in (("watch",), ("list", "watch"))
    ),
    *(
        pytest.param(within_watches(status), id=f"ERROR {status} within watches")
        for status in (403, 410, 429, 500)
    ),
    *(
        pytest.param(on_reads(manner), id=str(manner))
        for manner in (Manner.CLOSED, Manner.RESET, Manner.TRUNCATED, Manner.SILENT)
    ),
]


class Running:
    """The operator behind the proxy, with one policy in force."""

    def __init__(
        self, cluster: Cluster, server: Server, proxy: ApiProxy, port: int, task: "asyncio.Task[int]"
    ) -> None:
        self.cluster, self.server, self.proxy, self.port, self.task = cluster, server, proxy, port, task
        self._numbers: Iterator[int] = itertools.count()

    @asynccontextmanager
    async def broken(self, fault: ApiFault) -> AsyncIterator[None]:
        """The fault is on while this is entered; every watch has to be opened anew under it."""
        number = next(self._numbers)
        self.proxy.faults.begin(number, fault)
        self.server.end_watches(with_error=False)
        yield
        hits = self.proxy.faults.end(number)
        assert len(KINDS) <= hits, "every watch is hit"
        assert hits <= len(KINDS) * MOST_TRIES, "none is tried all the time"

    async def health(self, path: str) -> int:
        async with ClientSession() as session, session.get(f"http://127.0.0.1:{self.port}{path}") as answer:
            return answer.status

    async def until(self, is_reached: Callable[[], bool], what: str) -> None:
        await until(self.cluster, is_reached, what)


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int
) -> AsyncIterator[Running]:
    cluster, stop, kubeconfig = Cluster(), asyncio.Event(), tmp_path / "through-proxy"
    for name in ("gpu-1", "gpu-2"):
        cluster.add_node(name)
    cluster.add_node("cp", control_plane=True)
    cluster.add_policy("default", {"names": ["gpu-1", "gpu-2"], "devices": CARDS})
    server = Server(cluster.api)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    async with serving(server, tmp_path) as direct:
        proxy = ApiProxy(from_kubeconfig(direct))
        async with proxy.serving("127.0.0.1", 0):
            kubeconfig.write_text(yaml.safe_dump(kubeconfig_for(proxy.url)))
            task = asyncio.create_task(serve(await made(kubeconfig), options(unused_port), stop=stop))
            await until(cluster, lambda: is_ready(cluster), "the policy is ready")
            yield Running(cluster, server, proxy, unused_port, task)
            stop.set()
            server.end_watches(with_error=False)
            await asyncio.wait_for(task, SECONDS)


@pytest.mark.parametrize("fault", FAULTS)
async def test_it_serves_again_by_itself_when_reading_works_again(running: Running, fault: ApiFault) -> None:
    async with running.broken(fault):
        running.cluster.api.remove(paths.NODES, "gpu-2")
        await asyncio.wait([running.task], timeout=LASTS)
        assert not running.task.done(), "the process has ended"
        assert await running.health("/healthz") == 200, "to start it anew would not help"
    running.cluster.add_node("gpu-3")
    running.cluster.add_policy("second", {"names": ["gpu-3"], "devices": CARDS})
    await running.until(lambda: is_ready(running.cluster, "second"), "a policy that came meanwhile is ready")
    await running.until(
        lambda: "gpu-2" not in running.cluster.api.of(paths.SHARE_NODES), "the node that went is released"
    )
    assert await running.health("/readyz") == 200


async def test_it_writes_nothing_once_the_lease_is_lost_meanwhile(running: Running) -> None:
    async with running.broken(within_watches(410)):
        running.server.lease["spec"]["holderIdentity"] = "another"
        running.server.lease["metadata"]["resourceVersion"] = "1000"
        await asyncio.wait([running.task], timeout=SECONDS)
        assert running.task.result() == 1, "it ends, and is started again to stand by"
        writes = len(running.cluster.api.writes)
        running.cluster.add_policy("second", {"names": ["gpu-1"], "devices": CARDS})
        await asyncio.sleep(LASTS)
    assert len(running.cluster.api.writes) == writes
