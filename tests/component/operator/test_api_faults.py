"""The process while the API server refuses or breaks what it reads: it goes on by itself when that is over.

The faults are the proxy's, between the operator and a fake API server.
"""

import asyncio
import socket
import sys
from asyncio.subprocess import Process, create_subprocess_exec
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from aiohttp import ClientSession
from chaos.proxy.fault import ApiFault, Manner
from chaos.proxy.server import ApiProxy
from tests.component.operator.test_app import CARDS, SECONDS, is_ready, until
from tests.fakes.operator_cluster import NAMESPACE, Cluster
from tests.fakes.operator_server import Server, kubeconfig_for, serving

from gpushare_core.kube import paths
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_operator.cluster.kinds import KINDS

LASTS = 1.5
"""Seconds of a fault."""
MAX_TRIES = 14
"""Calls for each kind in that time: a list and a watch after each delay of 0.1 s, 0.2 s, 0.4 s and so on."""


def refused(status: int, *verbs: str) -> ApiFault:
    return ApiFault(manner=Manner.STATUS, verbs=verbs, status=status)


def within_watches(status: int) -> ApiFault:
    return ApiFault(manner=Manner.EXPIRED, status=status)


def on_reads(manner: Manner) -> ApiFault:
    return ApiFault(manner=manner, verbs=("list", "watch"))


def called(cluster: Cluster, name: str) -> None:
    """Adds a node and a policy of that name for it."""
    cluster.add_node(name)
    cluster.add_policy(name, {"names": [name], "devices": CARDS})


@dataclass
class Running:
    """The operator's process behind the proxy, with the policy gpu-0 in force."""

    cluster: Cluster
    server: Server
    proxy: ApiProxy
    process: Process
    health: str

    @asynccontextmanager
    async def broken(self, fault: ApiFault) -> AsyncIterator[None]:
        """The fault is on while this is entered. Every watch has to be opened anew under it."""
        self.proxy.faults.begin(0, fault)
        self.server.end_watches(with_error=False)
        yield
        # Where nothing changes a watch may still wait after the fault before this one.
        await until(
            self.cluster,
            lambda: self.proxy.faults.hits(0) >= 2,
            f"the watches of nodes and policies are hit by {fault}",
        )
        hits = self.proxy.faults.end(0)
        assert hits <= len(KINDS) * MAX_TRIES, f"no backoff under {fault}"

    async def goes_on_after(self, fault: ApiFault, *, going: str, coming: str) -> None:
        cluster = self.cluster
        async with self.broken(fault):
            cluster.api.remove(paths.NODES, going)
            called(cluster, coming)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), LASTS)
            assert self.process.returncode is None, f"the process has ended under {fault}"
            assert await self.answer("/healthz") == 200, f"to start it anew would not help against {fault}"
        await until(cluster, lambda: is_ready(cluster, coming), f"what came under {fault} is ready")
        await until(
            cluster,
            lambda: going not in cluster.api.of(paths.SHARE_NODES),
            f"what went under {fault} is released",
        )

    async def answer(self, path: str) -> int:
        async with ClientSession() as session, session.get(self.health + path) as answer:
            return answer.status


@asynccontextmanager
async def operator(kubeconfig: Path, port: int) -> AsyncIterator[Process]:
    options = {
        "kubeconfig": kubeconfig,
        "namespace": NAMESPACE,
        "image": "gpushare:test",
        "health-port": port,
    }
    arguments = (f"--{name}={value}" for name, value in options.items())
    process = await create_subprocess_exec(sys.executable, "-m", "gpushare_operator.main", *arguments)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
async def running(tmp_path: Path, unused_port: int) -> AsyncIterator[Running]:
    cluster, kubeconfig = Cluster(), tmp_path / "through-proxy"
    cluster.add_node("cp", control_plane=True)
    called(cluster, "gpu-0")
    server = Server(cluster.api)
    async with serving(server, tmp_path) as direct:
        proxy = ApiProxy(from_kubeconfig(direct))
        async with proxy.serving("127.0.0.1", 0):
            kubeconfig.write_text(yaml.safe_dump(kubeconfig_for(proxy.url)))
            async with operator(kubeconfig, unused_port) as process:
                await until(cluster, lambda: is_ready(cluster, "gpu-0"), "the policy is ready")
                yield Running(cluster, server, proxy, process, f"http://127.0.0.1:{unused_port}")
            server.end_watches(with_error=False)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param([refused(status, "watch") for status in (403, 404, 410, 500)], id="refused watches"),
        pytest.param(
            [refused(status, "list", "watch") for status in (403, 404, 410, 500)], id="refused reads"
        ),
        pytest.param([within_watches(status) for status in (403, 410, 500)], id="ERROR within watches"),
        pytest.param(
            [on_reads(manner) for manner in (Manner.CLOSED, Manner.TRUNCATED, Manner.RESET, Manner.SILENT)],
            id="broken reads",
        ),
    ],
)
async def test_it_goes_on_by_itself_when_reading_works_again(
    running: Running, faults: Sequence[ApiFault]
) -> None:
    for number, fault in enumerate(faults):
        await running.goes_on_after(fault, going=f"gpu-{number}", coming=f"gpu-{number + 1}")
    assert await running.answer("/readyz") == 200


async def test_it_writes_nothing_when_the_lease_is_lost_meanwhile(running: Running) -> None:
    lease, cluster = running.server.lease, running.cluster
    async with running.broken(within_watches(410)):
        lease["spec"]["holderIdentity"] = "another"
        lease["metadata"]["resourceVersion"] = "1000"
        await asyncio.wait_for(running.process.wait(), SECONDS)
    assert running.process.returncode == 1, "it ends, and is started again to stand by"
    writes = len(cluster.api.writes)
    called(cluster, "gpu-1")
    assert len(cluster.api.writes) == writes
