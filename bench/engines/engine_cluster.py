"""A cluster with the product's objects, and one engine at a time that places shared pods on its nodes."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench import schedule_throughput
from bench.cluster import bench_cluster, installation
from bench.cluster.bench_cluster import Setting
from bench.cluster.cluster_objects import Layout
from bench.engines import claims
from bench.engines.access import Access, access_for
from bench.engines.engine import CLAIMS, EXTENDER, Engine
from bench.engines.on_bench_cluster import OnBenchCluster
from bench.engines.programs import CONFIGURATION, Pod, read_document
from bench.engines.running_engine import RUN_SECONDS, RunningEngine
from bench.fill_cluster import fill_share_nodes
from bench.measuring.figures import NotMeasuredError
from bench.measuring.once import Once
from bench.measuring.size import Size
from bench.schedule_throughput import Throughput

from gpushare_localcluster.build.binary import SCHEDULER, ensure_program
from gpushare_localcluster.build.minors import Minor, chosen_minor
from gpushare_localcluster.cluster import to_stderr

ADMISSION_SECONDS = 3.0
"""Until an API server admits by other policies than before: it looks once a second."""


@dataclass(slots=True, kw_only=True)
class EngineCluster(OnBenchCluster):
    """``program``: kube-scheduler with our plugin. ``folder``: for configurations and logs."""

    program: Path
    folder: Path
    _steps: Once[str, None] = field(default_factory=Once)
    _access: Once[str, Access] = field(default_factory=Once)

    async def access(self, engine: Engine) -> Access:
        """Returns how to reach the API server as our kube-scheduler with that engine."""
        account = engine.account
        return await self._access.get(account, partial(access_for, self.base.cluster, self.folder, account))

    async def prepare(self) -> None:
        """Returns when the product's rights and admission policies are in force, without its programs."""
        await self._steps.get("product", self._install)

    async def _install(self) -> None:
        cluster = self.base.cluster
        await self.base.thread(installation.install_programs, cluster, "Dedicated")
        await self.base.thread(installation.stop_operator, cluster)
        # An operator without a policy takes back what no policy asked for.
        await fill_share_nodes(self.client, self.layout)

    @asynccontextmanager
    async def without_admission(self) -> AsyncIterator[None]:
        """The product's admission policies are not in force while entered."""
        cluster = self.base.cluster
        removed = await self.base.thread(installation.remove_admission, cluster)
        try:
            await asyncio.sleep(ADMISSION_SECONDS)
            yield
        finally:
            await self.base.thread(installation.restore_admission, cluster, removed)
            await asyncio.sleep(ADMISSION_SECONDS)

    async def plain(self) -> Throughput:
        """Has the cluster's own kube-scheduler place pods that ask for nothing of ours.

        Raises:
            TimeoutError: it placed none.
        """
        return await schedule_throughput.measure(
            self.client, pods=self.size.pods, units=0, deadline=RUN_SECONDS
        )

    @asynccontextmanager
    async def running(self, engine: Engine) -> AsyncIterator[RunningEngine]:
        """The engine alone places shared pods while entered."""
        await self.prepare()
        pod = Pod.new(self.base.cluster, await self.access(engine), self.folder)
        found = RunningEngine(self.base, engine)
        async with AsyncExitStack() as stack:
            program, document = self.program, None
            if engine is CLAIMS:
                await self._steps.get("claims", self._offer_claims)
            elif engine is EXTENDER:
                program = self.base.cluster.binary.programs / "kube-scheduler"
                document = await pod.extender_configuration()
                found.extender = await stack.enter_async_context(pod.extender())
            elif engine.configure:
                document = engine.configure(read_document(CONFIGURATION))
            if document is not None:
                found.process = await stack.enter_async_context(pod.scheduler(program, document))
            yield found

    async def _offer_claims(self) -> None:
        if (minor := self.base.cluster.kubernetes).number < claims.FIRST_MINOR:
            raise NotMeasuredError(
                f"Kubernetes {minor.name} has no claims of consumable capacity, 1.36 has them"
            )
        await claims.offer(self.client, self.layout, units=bench_cluster.UNITS)


@asynccontextmanager
async def entered(layout: Layout, size: Size) -> AsyncIterator[EngineCluster]:
    """A cluster of its own. The clients of kube-scheduler and of kube-controller-manager are unlimited: the
    latter makes the claims of pods."""
    unlimited = installation.UNLIMITED
    setting = Setting(layout=layout, scheduler_flags=unlimited, controller_flags=unlimited)
    program = await asyncio.to_thread(_program, chosen_minor())
    with tempfile.TemporaryDirectory(prefix="engines-") as folder:
        async with bench_cluster.entered(setting, size) as base:
            yield EngineCluster(base=base, program=program, folder=Path(folder))


def _program(minor: Minor) -> Path:
    """Raises ``NotMeasuredError`` where there is none of that minor."""
    if minor not in SCHEDULER.minors:
        has = ", ".join(known.name for known in SCHEDULER.minors)
        raise NotMeasuredError(f"our kube-scheduler is built of Kubernetes {has}, not of {minor.name}")
    return ensure_program(SCHEDULER, minor, report=to_stderr).path
