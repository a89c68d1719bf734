"""Row ``start``: from the start of each program's process until it serves; imports are in it."""

import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.measuring.figures import Figure, at_most
from bench.peers.kubelet import Kubelet
from bench.peers.programs import (
    START_SECONDS,
    api_server,
    free_port,
    program,
    script,
    seconds_to_end,
    until_answer,
    while_running,
)
from bench.rows.programs import plugin_node
from bench.rows.programs.workplace import Workplace

from gpushare_core.api.names import NAMESPACE
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig

Measure = Callable[[Workplace], Awaitable[list[Figure]]]

OPERATOR_LEASE = "gpushare-operator"
"""Which the installation brings: the operator never makes it."""
LONGEST = 1.0
MAX_OF_OPERATOR = 2.0
AT_WORK = "at work"
"""What the operator's readiness says once it serves; before it says that it stands by."""


def start_of(what: str, measure: Callable[[Path], Awaitable[float]], longest: float = LONGEST) -> Measure:
    """Returns what measures the median of several starts, beside an API server that is almost empty."""

    async def starts(workplace: Workplace) -> list[Figure]:
        return [Figure(f"start of {what}", await _median(workplace, measure), "s", at_most(longest))]

    return starts


async def _median(workplace: Workplace, measure: Callable[[Path], Awaitable[float]]) -> float:
    seconds = [await measure(workplace.subfolder("start")) for _ in range(workplace.size.starts)]
    return statistics.median(seconds)


async def extender(folder: Path) -> float:
    async with api_server(folder) as kubeconfig:
        port, log = free_port(), folder / "extender.log"
        options = ("--listen", f"127.0.0.1:{port}", "--kubeconfig", kubeconfig)
        begun = time.perf_counter()
        async with program(script("gpushare-extender"), *options, log=log, killed=True) as process:
            await until_answer(process, f"http://127.0.0.1:{port}/readyz", log)
            return time.perf_counter() - begun


async def plugin(folder: Path) -> float:
    async with (
        api_server(folder) as kubeconfig,
        KubeClient(from_kubeconfig(kubeconfig)) as client,
        Kubelet(folder, GPUSHARE.memory_resource) as kubelet,
    ):
        await client.create(paths.SHARE_NODES, plugin_node.share_node(plugin_node.COARSE))
        options, log = plugin_node.arguments(kubeconfig, kubelet, free_port()), folder / "plugin.log"
        begun = time.perf_counter()
        async with program(plugin_node.PROGRAM, *options, log=log, killed=True) as process:
            await while_running(process, kubelet.until_listed(START_SECONDS), log)
            return time.perf_counter() - begun


async def operator(folder: Path) -> float:
    async with api_server(folder) as kubeconfig, KubeClient(from_kubeconfig(kubeconfig)) as client:
        await client.create(paths.leases(NAMESPACE), {"metadata": {"name": OPERATOR_LEASE}})
        port, log = free_port(), folder / "operator.log"
        options = ("--kubeconfig", kubeconfig, "--image", "bench", "--health-port", port)
        begun = time.perf_counter()
        async with program(script("gpushare-operator"), *options, log=log, killed=True) as process:
            url = f"http://127.0.0.1:{port}/readyz"
            await until_answer(process, url, log, is_right=lambda text: AT_WORK in text)
            return time.perf_counter() - begun


async def hostctl(_: Path) -> float:
    return await seconds_to_end("gpushare-hostctl", "--version")


async def command_line(_: Path) -> float:
    return await seconds_to_end("kubectl-gpushare", "--version")


ROWS = (
    ("Start of the extender, until it is ready", start_of("the extender", extender)),
    ("Start of the plugin, until its devices are listed", start_of("the plugin", plugin)),
    ("Start of the operator, until it is at work", start_of("the operator", operator, MAX_OF_OPERATOR)),
    ("Start of hostctl, until it has told its version", start_of("hostctl", hostctl)),
    ("Start of kubectl-gpushare, until it has told its version", start_of("kubectl-gpushare", command_line)),
)
"""Title of each, and what measures it: one that does not start leaves the others' figures."""
