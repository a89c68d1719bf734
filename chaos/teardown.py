"""The last policy goes, and nothing of ours may be left (I7)."""

from collections.abc import Iterable, Iterator, Mapping

from chaos.findings import Finding, Findings
from chaos.world import SYSTEM, World
from gpushare_core.json_object import Json
from gpushare_core.kube.paths import NODES, SHARE_NODES, daemon_sets, jobs
from gpushare_localcluster.errors import LocalClusterError

SECONDS = 240.0
OURS = "gpushare"


async def take_back(world: World, findings: Findings) -> None:
    """Deletes all policies and reports what is left of ours."""
    try:
        await world.thread(
            world.cluster.kubectl, "delete", "gpusharepolicies", "--all", f"--timeout={SECONDS:g}s"
        )
    except LocalClusterError as error:
        findings.add(Finding(rule="I7", sentence=f"policies are not gone after {SECONDS:g} s: {error}"))
        return
    for sentence in await _left(world):
        findings.add(Finding(rule="I7", sentence=sentence))


async def _left(world: World) -> list[str]:
    nodes, share_nodes, sets, left_jobs = [
        (await world.client.get(path))["items"]
        for path in (NODES, SHARE_NODES, daemon_sets(SYSTEM), jobs(SYSTEM))
    ]
    return [
        *(
            f"{kind} {each['metadata']['name']} is left"
            for kind, each in _objects(share_nodes, sets, left_jobs)
        ),
        *_marks(nodes),
        *differing_files(world.before, await world.thread(world.control_plane_files)),
    ]


def _objects(
    share_nodes: Iterable[Json], sets: Iterable[Json], left: Iterable[Json]
) -> Iterator[tuple[str, Json]]:
    for kind, items in (("GPUShareNode", share_nodes), ("DaemonSet", sets), ("Job", left)):
        for each in items:
            yield kind, each


def _marks(nodes: Iterable[Json]) -> Iterator[str]:
    for node in nodes:
        metadata = node["metadata"]
        for kind in ("labels", "annotations"):
            for key in metadata.get(kind) or {}:
                if OURS in key:
                    yield f"node {metadata['name']} still has {key} among its {kind}"


def differing_files(
    before: Mapping[str, Mapping[str, bytes]], after: Mapping[str, Mapping[str, bytes]]
) -> Iterator[str]:
    """Yields a sentence for every file of a control plane that is not as it was."""
    for node, files in before.items():
        for path in sorted(files.keys() | after[node].keys()):
            if path not in after[node]:
                yield f"{node}: /etc/kubernetes/{path} is gone"
            elif path not in files:
                yield f"{node}: /etc/kubernetes/{path} is left"
            elif files[path] != after[node][path]:
                yield f"{node}: /etc/kubernetes/{path} is not what it was"
