"""The last policy goes, and nothing of ours may be left (I7)."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

from chaos.findings import Finding, Findings
from chaos.plan.known import WORKERS
from chaos.world import World
from gpushare_cli.gather.cluster import read_traces
from gpushare_core.api.share_node import ISOLATION_FOLDER
from gpushare_core.residue import KUBELET_SECONDS, HostFile, Residue, residue
from gpushare_core.text.json_object import Json
from gpushare_localcluster.errors import LocalClusterError

LOOK_SECONDS = 1.0
WORKER_FOLDERS = ("/var/lib/kubelet/device-plugins", "/etc/kubernetes", ISOLATION_FOLDER)


async def take_back(world: World, findings: Findings, *, seconds: float) -> None:
    """Deletes all policies, which have to be gone within ``seconds``, and reports what is left of ours."""
    delete = ("delete", "gpusharepolicies", "--all", f"--timeout={seconds:g}s")
    try:
        await world.thread(world.cluster.kubectl, *delete, timeout=seconds + 60.0)
    except LocalClusterError as error:
        findings.add(Finding(rule="I7", sentence=f"policies are not gone after {seconds:g} s: {error}"))
        return
    for sentence in await _left(world):
        findings.add(Finding(rule="I7", sentence=sentence))


async def _left(world: World) -> list[str]:
    """The auditor's rules for objects and workers; control planes byte by byte."""
    found = await lasting(lambda: _residue(world))
    files = differing_files(world.before, await world.thread(world.control_plane_files))
    return [*(f"{trace.where}: {trace.sentence}" for trace in found), *files]


async def lasting(
    look: Callable[[], Awaitable[list[Residue]]],
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> list[Residue]:
    """Returns what ``look`` finds once nothing of it passes any more, or the time for that is over: the
    garbage collector of a busy cluster finds the pods of a deleted Job after many seconds."""
    until, found = clock() + KUBELET_SECONDS, await look()
    while any(left.passes for left in found) and clock() < until:
        await sleep(LOOK_SECONDS)
        found = await look()
    return found


async def _residue(world: World) -> list[Residue]:
    objects = [_without_capacity(trace) for trace in await read_traces(world.client)]
    return residue(objects, await world.thread(_worker_files, world))


def _without_capacity(item: Json) -> Json:
    """The kubelet shows zeros for a while."""
    parts = ("kind", "metadata", "spec")
    return {key: item.get(key) for key in parts} if item["kind"] == "Node" else item


def _worker_files(world: World) -> dict[str, list[HostFile]]:
    return {
        node: [
            HostFile(f"{folder[1:]}/{path.relative_to(world.node_file(node, folder)).as_posix()}")
            for folder in WORKER_FOLDERS
            for path in world.node_file(node, folder).rglob("*")
        ]
        for node in WORKERS
    }


def differing_files(
    before: Mapping[str, Mapping[str, bytes]], after: Mapping[str, Mapping[str, bytes]]
) -> Iterator[str]:
    """Yields a sentence for every file of a control plane that has changed."""
    for node, files in before.items():
        for path in sorted(files.keys() | after[node].keys()):
            if path not in after[node]:
                yield f"{node}: /etc/kubernetes/{path} is gone"
            elif path not in files:
                yield f"{node}: /etc/kubernetes/{path} is left"
            elif files[path] != after[node][path]:
                yield f"{node}: /etc/kubernetes/{path} is not what it was"
