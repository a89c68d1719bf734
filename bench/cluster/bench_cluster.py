"""A local cluster of few real workers and many nodes that only exist as objects, without and with us."""

import asyncio
import json
import ssl
import statistics
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec, TypeVar

from bench import schedule_throughput
from bench.cluster import installation
from bench.cluster.cluster_objects import Layout
from bench.fill_cluster import fill, fill_share_nodes
from bench.measuring.figures import NotMeasuredError
from bench.measuring.once import Once
from bench.measuring.size import Size
from bench.readings import audit_log, footprint, node_network
from bench.readings.audit_log import AuditLog
from bench.readings.footprint import Footprint
from bench.readings.process_use import ProcessUse
from bench.readings.prometheus_text import by_label, mean_between
from bench.schedule_throughput import Throughput

from gpushare_core.api.names import EXTENDER_PORT
from gpushare_core.audit.readers import read_ledger
from gpushare_core.audit.records import LedgerRecord
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.kube.paths import NODES
from gpushare_localcluster.cluster import LocalCluster

P = ParamSpec("P")
T = TypeVar("T")

UNITS = 4
"""What a shared pod asks for."""
SCHEDULER_PORT = 10259
ALGORITHM = "scheduler_scheduling_algorithm_duration_seconds"
BINDS = "gpushare_extender_binds_total"
CALL_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a cluster is made. ``engine``: the policy's; empty where it names none. ``scheduler_flags``: of the
    cluster's own kube-scheduler."""

    layout: Layout
    backend: str = "KubeScheduler"
    engine: str = ""
    scheduler_flags: Sequence[str] = ()
    controller_flags: Sequence[str] = ()

    @property
    def is_stock(self) -> bool:
        """Whether the cluster's own kube-scheduler places pods that ask for cards."""
        return self.backend != "Dedicated"


@dataclass(frozen=True, slots=True)
class Run:
    """One throughput, and what each of its pods cost. ``algorithm`` in milliseconds."""

    throughput: Throughput
    algorithm: float
    extender: float
    """Milliseconds of processor, all verbs and watches, creation to deletion."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Plain and shared pods, which took turns."""

    plain: tuple[Run, ...]
    shared: tuple[Run, ...]


def median(runs: Sequence[Run], figure: Callable[[Run], float]) -> float:
    return statistics.median(map(figure, runs))


def rate(run: Run) -> float:
    return run.throughput.rate


@dataclass(slots=True, kw_only=True)
class BenchCluster:
    """``client`` is the administrator's."""

    cluster: LocalCluster
    client: KubeClient
    setting: Setting
    size: Size
    audit: AuditLog
    _installed: bool = False
    _steps: Once[str, None] = field(default_factory=Once)
    _comparisons: Once[str, Comparison] = field(default_factory=Once)

    @property
    def layout(self) -> Layout:
        return self.setting.layout

    async def thread(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """Runs a blocking call, such as those of ``cluster``, beside everything else."""
        return await asyncio.to_thread(call, *args, **options)

    @property
    def scheduler_name(self) -> str:
        """Who places shared pods: with backend Dedicated an admission policy writes another name."""
        return "default-scheduler"

    @property
    def program(self) -> str:
        """Which of our programs knows the cards."""
        return "extender"

    @property
    def shows_attempts(self) -> bool:
        """Whether the metrics of the scheduler that places shared pods can be read."""
        return self.setting.is_stock

    # States

    async def stock(self, pods: int) -> Throughput:
        """Returns the throughput of plain pods before the product came.

        Raises:
            NotMeasuredError: it is there already, or not all pods were bound.
        """
        if self._installed:
            raise NotMeasuredError("the product is installed already")
        return bound(await schedule_throughput.measure(self.client, pods=pods, units=0))

    @property
    def _workers(self) -> tuple[str, ...]:
        return installation.workers(self.setting.backend)

    async def install(self) -> None:
        """Returns with the product connected by the setting's backend."""
        self._installed = True
        await self._steps.get("install", self._install)

    async def _install(self) -> None:
        """The workers take the product's own programs."""
        await self.uncordon(*self._workers)
        await self.thread(installation.install, self.cluster, self.setting.backend, self.setting.engine)

    async def open_worker(self) -> None:
        """Returns when pods may go to the real worker, with the product installed."""
        await self.install()
        await self.uncordon(installation.WORKER)

    async def uncordon(self, *nodes: str) -> None:
        """Pods may go to each of ``nodes`` from now on.

        kubectl leaves the taint to a controller. That comes to it a minute later beside thousands of new
        nodes, and then to one node after the other: replicas that are to be apart would all go to the first.
        """
        for node in nodes:
            await self.client.merge(f"{NODES}/{node}", {"spec": {"unschedulable": None, "taints": None}})

    async def close_worker(self) -> None:
        """Returns when pods may not go to a real worker, with all of the product installed."""
        await self.install()
        await self.thread(self.cluster.kubectl, "cordon", *self._workers)

    async def only_objects(self) -> None:
        """Returns when the nodes that only exist as objects take shared pods, and no other node takes any."""
        await self.close_worker()
        await self._steps.get("share nodes", self._share_objects)

    async def _share_objects(self) -> None:
        await self.thread(installation.stop_operator, self.cluster)
        await fill_share_nodes(self.client, self.layout)

    # Measurements

    async def comparison(self) -> Comparison:
        """Plain and shared pods taking turns, measured once. The extender has the first run to warm up."""
        return await self._comparisons.get("plain and shared", self._compare)

    async def _compare(self) -> Comparison:
        await self.only_objects()
        await self.run(units=UNITS)
        plain, shared = list[Run](), list[Run]()
        for _ in range(self.size.repeats):
            plain.append(await self.run(units=0))
            shared.append(await self.run(units=UNITS))
        return Comparison(tuple(plain), tuple(shared))

    async def run(self, *, units: int) -> Run:
        """Raises ``NotMeasuredError`` where not all pods were bound."""
        metrics, use = await self.scheduler_metrics(), await self.footprint("extender")
        throughput = await schedule_throughput.measure(self.client, pods=self.size.pods, units=units)
        bound(throughput)
        seconds = (await self.footprint("extender")).cpu - use.cpu
        algorithm = mean_between(metrics, await self.scheduler_metrics(), ALGORITHM)
        return Run(throughput, 1e3 * algorithm, 1e3 * seconds / throughput.created)

    async def footprint(self, container: str) -> Footprint:
        return await self.thread(footprint.of_container, self.cluster, container)

    async def use(self) -> ProcessUse:
        """Returns what the extender has used."""
        found = await self.footprint("extender")
        return ProcessUse(found.cpu, found.resident, found.peak)

    async def scheduler_metrics(self) -> str:
        """Of the cluster's own kube-scheduler."""
        token = from_kubeconfig(self.cluster.kubeconfig).token()
        return await self._read(
            SCHEDULER_PORT, "/metrics", node_network.trusting_anybody(), f"Bearer {token}"
        )

    async def extender_metrics(self) -> str:
        return await self._read(EXTENDER_PORT + 1, "/metrics", None, "")

    async def failed_binds(self) -> float:
        """Returns how many binds the extender was asked for and has not carried out."""
        return failed_binds(await self.extender_metrics())

    async def ledger(self) -> Mapping[str, LedgerRecord]:
        """Returns node -> what the extender counts."""
        return read_ledger(json.loads(await self.extender_ledger()))

    async def extender_ledger(self) -> str:
        """What the extender counts, asked with kube-scheduler's own key."""
        return await self._read(EXTENDER_PORT, "/gpushare/inspect", self._of_scheduler(), "")

    def _of_scheduler(self) -> ssl.SSLContext:
        folder = self.cluster.node_path(installation.CONTROL_PLANE, "/etc/kubernetes/gpushare")
        context = ssl.create_default_context(cafile=str(folder / "extender" / "authorities.pem"))
        context.load_cert_chain(folder / "keys" / "client.pem")
        context.check_hostname = False
        return context

    async def _read(self, port: int, path: str, tls: ssl.SSLContext | None, authorization: str) -> str:
        pid = await self.thread(self.cluster.node_pid, installation.CONTROL_PLANE)
        headers = {"Authorization": authorization} if authorization else {}
        content = await self.thread(node_network.read, pid, port, path, tls=tls, headers=headers)
        return content.decode()


def failed_binds(metrics: str) -> float:
    """Returns how many binds ended otherwise than bound, by the extender's metrics."""
    return sum(count for result, count in by_label(metrics, BINDS, "result").items() if result != "Bound")


def bound(throughput: Throughput) -> Throughput:
    """Returns it where every pod was bound. Raises ``NotMeasuredError``."""
    if throughput.bound < throughput.created:
        raise NotMeasuredError(f"{throughput.bound} of {throughput.created} pods were bound in time")
    return throughput


@asynccontextmanager
async def entered(setting: Setting, size: Size) -> AsyncIterator[BenchCluster]:
    """A cluster of its own with everything that ``setting`` describes, and nothing of ours but the CRDs."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        cluster, logs = LocalCluster(Path(folder) / "cluster"), Path(folder) / "audit"
        try:
            await asyncio.to_thread(_start, cluster, logs, setting)
            async with KubeClient(from_kubeconfig(cluster.kubeconfig), timeout=CALL_SECONDS) as client:
                await fill(client, setting.layout)
                yield BenchCluster(
                    cluster=cluster,
                    client=client,
                    setting=setting,
                    size=size,
                    audit=AuditLog(audit_log.log_file(logs)),
                )
        finally:
            await asyncio.to_thread(cluster.stop)


def _start(cluster: LocalCluster, logs: Path, setting: Setting) -> None:
    backend = setting.backend
    flags = {
        "kube-scheduler": setting.scheduler_flags,
        "kube-controller-manager": setting.controller_flags,
    }
    cluster.start(installation.config(logs, backend=backend, flags=flags))
    cluster.wait_ready()
    installation.install_crds(cluster)
    cluster.kubectl("cordon", *installation.workers(backend))
