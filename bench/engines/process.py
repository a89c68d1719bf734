"""Programs of an engine, in the network of the control plane, and what they say of themselves there."""

import asyncio
import http.client
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.bench_cluster import SCHEDULER_PORT
from bench.peers.programs import START_SECONDS, ProgramEndedError, last_words, program
from bench.readings import node_network

from gpushare_localcluster.cluster import LocalCluster

POLL_SECONDS = 0.2
READINESS = "/readyz"
COLLECTING = "/debug/pprof/heap?gc=1"
"""Has a Go program collect its garbage before it answers."""


@dataclass(frozen=True, slots=True)
class Served:
    """What a process serves on its loopback address. ``token``: of the one who asks; empty: plain HTTP."""

    pid: int
    port: int
    token: str = ""

    async def read(self, path: str) -> bytes:
        """Raises ``OSError`` or ``HTTPException`` where it does not answer with 200."""
        tls = node_network.trusting_anybody() if self.token else None
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        return await asyncio.to_thread(node_network.read, self.pid, self.port, path, tls=tls, headers=headers)

    async def metrics(self) -> str:
        return (await self.read("/metrics")).decode()

    async def collect_garbage(self) -> None:
        """Of a kube-scheduler."""
        await self.read(COLLECTING)


@asynccontextmanager
async def served(
    cluster: LocalCluster, command: Sequence[str | Path], *, log: Path, port: int, token: str = ""
) -> AsyncIterator[Served]:
    """Runs ``command`` while entered; yields once it says at ``port`` that it is ready.

    Raises:
        ProgramEndedError: it did not live so long.
        TimeoutError: it did not say so in time.
    """
    inside = await asyncio.to_thread(cluster.control_plane_command, [str(word) for word in command])
    async with program(*inside, log=log) as process:
        found = Served(process.pid, port, token)
        await _until_ready(process, found, log)
        yield found


async def _until_ready(process: asyncio.subprocess.Process, found: Served, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not await _is_ready(found):
        if process.returncode is not None:
            raise ProgramEndedError(f"{log.stem} ended with {process.returncode}: {last_words(log)}")
        if time.monotonic() > deadline:
            raise TimeoutError(f"{log.stem} is not ready after {START_SECONDS:g} s: {last_words(log)}")
        await asyncio.sleep(POLL_SECONDS)


async def _is_ready(found: Served) -> bool:
    try:
        await found.read(READINESS)
    except (OSError, http.client.HTTPException):
        return False
    return True


def scheduler_command(program: Path, *, config: Path, kubeconfig: Path) -> list[str | Path]:
    """``kubeconfig``: for asking the API server who reads the metrics."""
    return [
        program,
        f"--config={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={SCHEDULER_PORT}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]
