"""One plugin between stand-ins for the kubelet and the API server, with as many pods as a node takes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.cluster.cluster_objects import MOMENT, NAMESPACE, pending_pod
from bench.measuring.percentiles import Percentiles
from bench.measuring.size import Size
from bench.peers.kubelet import Kubelet
from bench.peers.programs import (
    START_SECONDS,
    api_server,
    free_port,
    program,
    script,
    until_answer,
    while_running,
)
from bench.readings import process_use

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.api.names import API_VERSION, NODE_KIND
from gpushare_core.dialects.gpushare import GPUSHARE
from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import from_kubeconfig
from gpushare_core.text.json_object import Json
from gpushare_core.text.whole_number import whole_number

PROGRAM = script("gpushare-plugin")
NODE = "bench"
CARDS = 8
STATUS_SECONDS = 60.0
"""Until the status has what was admitted."""
SETTLE_SECONDS = 2.0
"""After the status: what comes next is what a plugin does when nothing happens."""
REST_SECONDS = 15.0
"""Of a node of which no row asks what its plugin does meanwhile: it reads the kubelet's books once more."""
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class PluginNode:
    """A node by its cards. ``units``: of all its cards together; ``each``: what a pod asks for."""

    unit: str
    card_memory: str
    units: int
    each: int


COARSE = PluginNode("1Gi", "16Gi", 128, 1)
FINE = PluginNode("1M", "32G", 256_000, 2000)


@dataclass(frozen=True, slots=True)
class PluginUse:
    """What a plugin needs."""

    admission: Percentiles
    """Milliseconds of GetPreferredAllocation and Allocate of one pod."""
    offered: float
    """MiB resident when nobody holds anything."""
    loaded: float
    """MiB resident with all pods admitted and reported, once nothing happens any more."""
    cpu: float
    """Milliseconds of processor for each pod, with all that follows until the status has it."""
    idle: float
    """Percent of a core while nothing happens."""
    pods: int


async def measure_plugin(folder: Path, node: PluginNode, size: Size) -> PluginUse:
    """Admits pods one after the other, as a kubelet does.

    Raises:
        TimeoutError: devices, or the status, did not come in time.
        ProgramEndedError: the plugin ended.
    """
    pods = size.fine_admissions if node == FINE else size.admissions
    async with running(folder, node) as (client, kubelet, pid):
        offered = process_use.of_process(pid)
        taken = [await _admitted(client, kubelet, node, number) for number in range(pods)]
        await _until_reported(client, units=pods * node.each)
        cpu = process_use.of_process(pid).cpu - offered.cpu
        await asyncio.sleep(SETTLE_SECONDS)
        idle = await _idle(pid, size.idle_seconds if node == COARSE else min(size.idle_seconds, REST_SECONDS))
        loaded = process_use.of_process(pid)
    return PluginUse(Percentiles.of(taken), offered.resident, loaded.resident, 1e3 * cpu / pods, idle, pods)


async def _idle(pid: int, seconds: float) -> float:
    before = process_use.exact_cpu(pid)
    await asyncio.sleep(seconds)
    return 100 * (process_use.exact_cpu(pid) - before) / seconds


@asynccontextmanager
async def running(folder: Path, node: PluginNode) -> AsyncIterator[tuple[KubeClient, Kubelet, int]]:
    """The plugin of ``node``, registered. Yields a client of its API server, its kubelet, and its
    PID: that of the plugin itself, whose watchdog is measured by itself (docs/benchmarks.md)."""
    async with (
        api_server(folder) as kubeconfig,
        KubeClient(from_kubeconfig(kubeconfig)) as client,
        Kubelet(folder, GPUSHARE.memory_resource) as kubelet,
    ):
        await client.create(paths.SHARE_NODES, share_node(node))
        port, log = free_port(), folder / "plugin.log"
        async with program(PROGRAM, *arguments(kubeconfig, kubelet, port), log=log) as process:
            await until_answer(process, f"http://127.0.0.1:{port}/readyz", log)
            await while_running(process, kubelet.until_listed(START_SECONDS), log)
            if len(kubelet.devices) != node.units:
                raise ValueError(f"{len(kubelet.devices)} units are offered, {node.units} should be")
            yield client, kubelet, process_use.only_child(process.pid)


def arguments(kubeconfig: Path, kubelet: Kubelet, port: int) -> list[object]:
    """Returns the command line of the plugin."""
    sockets = [
        "--device-plugins-dir",
        kubelet.device_plugins,
        "--pod-resources-socket",
        kubelet.pod_resources,
    ]
    return ["--node", NODE, "--kubeconfig", kubeconfig, *sockets, "--health-port", port]


def share_node(node: PluginNode) -> Json:
    """The GPUShareNode, as the operator writes it."""
    simulated = [{"count": CARDS, "memory": node.card_memory, "model": "Bench"}]
    devices = {"source": "Simulated", "simulated": simulated}
    spec = {"policy": "bench", "mode": "Memory", "memoryUnit": node.unit, "devices": devices}
    metadata = {"name": NODE, "generation": 1}
    return {"apiVersion": API_VERSION, "kind": NODE_KIND, "metadata": metadata, "spec": spec}


async def _admitted(client: KubeClient, kubelet: Kubelet, node: PluginNode, number: int) -> float:
    """Returns the milliseconds that it took, from when the pod is bound."""
    cards = (await client.get(f"{paths.SHARE_NODES}/{NODE}"))["status"]["cards"]
    name = f"pod-{number:03d}"
    card = cards[number % CARDS]["uuid"]
    await client.create(paths.pods(NAMESPACE), bound_pod(name, node, card))
    return await kubelet.admit(name, _uid(name), node.each)


def bound_pod(name: str, node: PluginNode, card: str) -> Json:
    """A pod as the extender's Binding leaves it: on the node, with its allocation of ``card``."""
    shares = {card: node.each}
    allocation = Allocation(
        node=NODE, uid=_uid(name), at=MOMENT, unit=node.unit, containers={"main": shares}, cards=shares
    )
    pod = pending_pod(name, units=node.each)
    pod["metadata"] |= {
        "uid": _uid(name),
        "annotations": {GPUSHARE.allocation_annotation: encode_allocation(allocation)},
    }
    pod["spec"]["nodeName"] = NODE
    pod["status"] = {"phase": "Pending"}
    return pod


def _uid(name: str) -> str:
    return f"uid-{name}"


async def _until_reported(client: KubeClient, *, units: int) -> None:
    deadline = asyncio.get_running_loop().time() + STATUS_SECONDS
    while (found := allocated(await client.get(f"{paths.SHARE_NODES}/{NODE}"))) != units:
        if asyncio.get_running_loop().time() > deadline:
            raise TimeoutError(
                f"the status counts {found} units after {STATUS_SECONDS:g} s, {units} are allocated"
            )
        await asyncio.sleep(POLL_SECONDS)


def allocated(share_node: Json) -> int:
    """Returns the units that the status counts as allocated."""
    cards = share_node.get("status", {}).get("cards") or ()
    return sum(whole_number(str(card.get("allocatedUnits", 0))) for card in cards)
