"""An engine at work, as rows see it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from bench import schedule_throughput
from bench.engines import claims
from bench.engines.engine import CLAIMS, PLUGIN, Engine
from bench.engines.on_bench_cluster import OnBenchCluster
from bench.engines.process import Served
from bench.measuring.figures import NotMeasuredError
from bench.readings import process_use
from bench.readings.process_use import ProcessUse
from bench.readings.scheduler_metrics import failed_attempts
from bench.schedule_throughput import Throughput

from gpushare_core.audit.readers import read_scheduler_ledger
from gpushare_core.audit.records import LedgerRecord

WARM_SHARE = 4
"""Of the pods of a run one in so many warms a new scheduler up."""
RUN_SECONDS = 120.0
SHOWN = "/configz"


@dataclass(slots=True)
class RunningEngine(OnBenchCluster):
    """What rows need of a cluster, see ``Ground``, and runs of pods."""

    engine: Engine
    process: Served | None = None
    """Its kube-scheduler; None: the cluster's own."""
    extender: Served | None = None

    @property
    def scheduler_name(self) -> str:
        return self.engine.scheduler

    @property
    def program(self) -> str:
        return "extender" if self.extender else "kube-scheduler"

    @property
    def shows_attempts(self) -> bool:
        return True

    async def only_objects(self) -> None:
        """The real worker was never opened."""

    async def scheduler_metrics(self) -> str:
        return await (self.process.metrics() if self.process else self.base.scheduler_metrics())

    async def failed_binds(self) -> float:
        return failed_attempts(await self.scheduler_metrics())

    async def use(self) -> ProcessUse:
        """Raises ``OSError`` where no program of ours runs."""
        found = self.extender or self.process
        if found is None:
            raise OSError(f"{self.engine.name}: no program of ours runs")
        return process_use.of_process(found.pid)

    async def ledger(self) -> Mapping[str, LedgerRecord]:
        """Of the plugin what kube-scheduler shows; of other engines nobody asks it here.

        Raises:
            NotMeasuredError: it does not know yet what is free.
        """
        if self.engine is not PLUGIN or not self.process:
            return {}
        found = read_scheduler_ledger(json.loads(await self.process.read(SHOWN)))
        if found is None:
            raise NotMeasuredError("kube-scheduler with the plugin does not know yet what is free")
        return found

    async def warm_up(self) -> None:
        """Returns when the engine has placed its first pods, and is as fast as it will be."""
        await self.run(pods=max(1, self.size.pods // WARM_SHARE))

    async def run(self, *, pods: int = 0) -> Throughput:
        """Has the engine place so many of its pods, by default as many as a run has, and deletes them.

        Raises:
            TimeoutError: it placed none.
        """
        throughput = await schedule_throughput.measure(
            self.client,
            pods=pods or self.size.pods,
            units=self.engine.units,
            scheduler=self.engine.scheduler,
            asking=self.engine.asking,
            deadline=RUN_SECONDS,
        )
        if self.engine is CLAIMS:
            await claims.all_gone(self.client)
        return throughput
