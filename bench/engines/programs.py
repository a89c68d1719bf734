"""The programs of our kube-scheduler's pod, as its containers run them, in the control plane's network."""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from bench.cluster.bench_cluster import SCHEDULER_PORT
from bench.engines import configuration
from bench.engines.access import Access
from bench.engines.process import Served, scheduler_command, served
from bench.peers.programs import ROOT, script, seconds_to_end

from gpushare_core.api.names import DEDICATED_SCHEDULER, EXTENDER_PORT, NAMESPACE
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.text.json_object import Json
from gpushare_localcluster.cluster import LocalCluster

CONFIGURATION = ROOT / "scheduler" / "config.yaml"
HEALTH_PORT = EXTENDER_PORT + 1
WEIGHT = 5
RESOURCES = (GPUSHARE.memory_resource, GPUSHARE.slice_resource, GPUSHARE.card_resource)


@dataclass(frozen=True, slots=True)
class Pod:
    """``folder`` is shared by its containers."""

    cluster: LocalCluster
    access: Access
    folder: Path

    @classmethod
    def new(cls, cluster: LocalCluster, access: Access, parent: Path) -> "Pod":
        """Returns one with a folder of its own in ``parent``."""
        return cls(cluster, access, Path(tempfile.mkdtemp(prefix="pod-", dir=parent)))

    async def extender_configuration(self) -> Json:
        """Has the init container write keys and configuration. Returns the latter."""
        options = {
            "--folder": self.folder,
            "--scheduler-name": DEDICATED_SCHEDULER,
            "--lease-namespace": NAMESPACE,
            "--extender-url": f"https://127.0.0.1:{EXTENDER_PORT}/gpushare",
            "--prioritize-verb": "prioritize",
            "--weight": WEIGHT,
        }
        managed = [part for name in RESOURCES for part in ("--managed-resource", name)]
        words = [str(part) for option in options.items() for part in option]
        await seconds_to_end("gpushare-hostctl", "dedicated", *words, *managed)
        return read_document(self.folder / "kube-scheduler.yaml")

    @asynccontextmanager
    async def scheduler(self, program: Path, document: Json) -> AsyncIterator[Served]:
        """Runs a kube-scheduler with that configuration while entered."""
        config = self.folder / "configuration.yaml"
        config.write_text(configuration.with_client(document, self.access.kubeconfig))
        command = scheduler_command(program, config=config, kubeconfig=self.access.kubeconfig)
        log, token = self.folder / "kube-scheduler.log", self.access.administrator
        async with served(self.cluster, command, log=log, port=SCHEDULER_PORT, token=token) as found:
            yield found

    @asynccontextmanager
    async def extender(self) -> AsyncIterator[Served]:
        """Runs the extender with the keys in the folder while entered."""
        command: list[str | Path] = [
            script("gpushare-extender"),
            *("--listen", f"127.0.0.1:{EXTENDER_PORT}", "--health-listen", f"127.0.0.1:{HEALTH_PORT}"),
            *("--tls-cert", self.folder / "server.pem", "--client-ca", self.folder / "authorities.pem"),
            *("--kubeconfig", self.access.kubeconfig, "--namespace", NAMESPACE),
        ]
        async with served(self.cluster, command, log=self.folder / "extender.log", port=HEALTH_PORT) as found:
            yield found


def read_document(path: Path) -> Json:
    found: Json = yaml.safe_load(path.read_text())
    return found
