"""Row ``cli``: what the commands that only read take of people's time and of their machine's memory.

Whole processes of ``kubectl-gpushare``, imports and TLS included, in turns beside a real API server.
"""

import json
import statistics
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.cluster.bench_cluster import BenchCluster
from bench.cluster.cluster_objects import NAMESPACE, node_name, pending_pod
from bench.measuring.figures import Figure, NotMeasuredError, at_most
from bench.peers.programs import printed_json, script

from gpushare_core.kube import paths
from gpushare_core.text.json_object import Json

MAX_SECONDS = 1.5
MAX_MIB = 150.0
RUN_SECONDS = 60.0
"""For each run, of a command that is much too slow."""
CANNOT_LOOK = 2
WAITING = "cli-waits"
"""A pod that fits no card."""
MANIFEST = "MANIFEST"
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("version",),
    ("status",),
    ("inspect",),
    ("inspect", "--problems"),
    ("inspect", node_name(0)),
    ("pods",),
    ("namespaces",),
    ("why", WAITING),
    ("simulate", "-f", MANIFEST),
    ("top", "--once"),
    ("top", "nodes", "--once"),
    ("top", "pods", "--once"),
    ("inspect", "-o", "json"),
)


async def commands(cluster: BenchCluster) -> list[Figure]:
    """Median of the seconds and most of the memory of each command, in turns with the others."""
    await cluster.only_objects()
    return await measured(cluster)


async def measured(cluster: BenchCluster) -> list[Figure]:
    async with _waiting_pod(cluster) as folder:
        found = {command: await _runs(cluster, command, folder) for command in COMMANDS}
    return [figure for command, runs in found.items() for figure in command_figures(command, runs)]


def command_figures(command: Sequence[str], runs: Sequence[Json]) -> list[Figure]:
    """Raises ``NotMeasuredError`` for a command that could not look, or printed nothing: that is fast."""
    name = " ".join(command).replace(MANIFEST, "FILE")
    for run in runs:
        if not 0 <= run["status"] < CANNOT_LOOK or not run["printed"]:
            raise NotMeasuredError(f"kubectl gpushare {name} ended with {run['status']}: {run['error']}")
    seconds, peak = statistics.median(run["seconds"] for run in runs), max(run["peak"] for run in runs)
    return [
        Figure(f"{name}: time", seconds, "s", at_most(MAX_SECONDS)),
        Figure(f"{name}: processor", statistics.median(run["cpu"] for run in runs), "s"),
        Figure(f"{name}: memory", peak, "MiB", at_most(MAX_MIB)),
        Figure(f"{name}: printed", runs[-1]["printed"] / 1024, "KiB"),
    ]


@asynccontextmanager
async def _waiting_pod(cluster: BenchCluster) -> AsyncIterator[Path]:
    """While it is entered there is one. Yields a folder with the manifest of another."""
    units = cluster.layout.card_units + 1
    await cluster.client.create(paths.pods(NAMESPACE), pending_pod(WAITING, units=units))
    with TemporaryDirectory(prefix="cli-") as folder:
        manifest = Path(folder) / MANIFEST
        manifest.write_text(json.dumps(pending_pod("cli-simulated", units=4)))
        yield Path(folder)
    await cluster.client.delete(paths.pod_path(NAMESPACE, WAITING))


async def _runs(cluster: BenchCluster, command: Sequence[str], folder: Path) -> list[Json]:
    runs = cluster.size.starts
    words = [str(folder / word) if word == MANIFEST else word for word in command]
    options = ("--kubeconfig", cluster.cluster.kubeconfig, "--request-timeout", "60s")
    program = (runs, script("kubectl-gpushare"), *words, *options)
    log = folder / "log"
    found = await printed_json("bench.readings.command_use", *program, log=log, deadline=RUN_SECONDS * runs)
    taken: list[Json] = found["runs"]
    return taken
