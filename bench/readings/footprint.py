"""What the product's processes on a local cluster use."""

from dataclasses import dataclass

from bench.measuring.figures import NotMeasuredError
from bench.readings.process_use import ProcessUse, parsed

from gpushare_core.api.names import NAMESPACE
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.containers import ContainerRecord


@dataclass(frozen=True, slots=True)
class Footprint:
    """Of one container's process. ``resident`` and ``peak`` in MiB, ``cpu`` in seconds since its start."""

    container: str
    node: str
    resident: float
    peak: float
    cpu: float


def measure(cluster: LocalCluster) -> list[Footprint]:
    """Returns the footprints of all running containers of the product, by name."""
    running = [
        record
        for record in cluster.containers()
        if record.namespace == NAMESPACE and record.state == "running"
    ]
    footprints = (_footprint(cluster, record) for record in running)
    return sorted(footprints, key=lambda footprint: footprint.container)


def of_container(cluster: LocalCluster, name: str) -> Footprint:
    """Returns the footprint of the one container of that name; of several the one that has worked most.

    Raises:
        NotMeasuredError: none runs.
    """
    found = [footprint for footprint in measure(cluster) if footprint.container == name]
    if not found:
        raise NotMeasuredError(f"no container {name} of the product is running")
    return max(found, key=lambda footprint: footprint.cpu)


def _footprint(cluster: LocalCluster, record: ContainerRecord) -> Footprint:
    use = _use(cluster, record)
    return Footprint(record.container, record.node, use.resident, use.peak, use.cpu)


def _use(cluster: LocalCluster, record: ContainerRecord) -> ProcessUse:
    # Of a plugin the first process only watches: what does the work is its child.
    children = cluster.node_exec(record.node, ["cat", f"/proc/{record.pid}/task/{record.pid}/children"])
    folder = f"/proc/{next(iter(children.stdout.split()), record.pid)}"
    stat, _, status = cluster.node_exec(
        record.node, ["cat", f"{folder}/stat", f"{folder}/status"]
    ).stdout.partition("\n")
    return parsed(stat, status)
