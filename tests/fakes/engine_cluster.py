"""A cluster on which engines take turns, without programs: one scheduler, which does not choose."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engines.access import Access
from bench.engines.engine import Engine
from bench.engines.engine_cluster import EngineCluster
from bench.engines.running_engine import RunningEngine
from tests.fakes.bench_cluster import PretendCluster, pretend_cluster

from gpushare_core.kube.credentials import from_kubeconfig


@dataclass(slots=True, kw_only=True)
class PretendEngines(EngineCluster):
    """``started``: the engines in the order in which they were, and when there were no admission policies."""

    pretended: PretendCluster
    started: list[str]

    async def access(self, engine: Engine) -> Access:
        del engine
        return Access(self.folder / "kubeconfig", from_kubeconfig(self.folder / "kubeconfig"), "")

    async def prepare(self) -> None:
        await self.pretended.install()

    @asynccontextmanager
    async def without_admission(self) -> AsyncIterator[None]:
        self.started.append("no admission policies")
        yield

    @asynccontextmanager
    async def running(self, engine: Engine) -> AsyncIterator[RunningEngine]:
        self.started.append(engine.name)
        yield RunningEngine(self.pretended, engine)


@asynccontextmanager
async def pretend_engines(folder: Path, **size: Any) -> AsyncIterator[PretendEngines]:
    async with pretend_cluster(folder, **size) as cluster:
        yield PretendEngines(
            base=cluster, program=Path("kube-scheduler"), folder=folder, pretended=cluster, started=[]
        )
