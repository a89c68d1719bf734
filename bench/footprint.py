"""What each process of the product holds resident."""

from dataclasses import dataclass

from gpushare_core.api.names import NAMESPACE
from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.containers import ContainerRecord


@dataclass(frozen=True, slots=True)
class Footprint:
    """Resident and peak size of one container's process, in MiB."""

    container: str
    node: str
    resident: float
    peak: float


def measure(cluster: LocalCluster) -> list[Footprint]:
    """Returns the footprints of all running containers of the product, by name."""
    running = [
        record
        for record in cluster.containers()
        if record.namespace == NAMESPACE and record.state == "running"
    ]
    footprints = (_footprint(cluster, record) for record in running)
    return sorted(footprints, key=lambda footprint: footprint.container)


def mebibytes(status: str, field: str) -> float:
    """Returns the MiB that ``field`` has in ``status``, the text of ``/proc/<pid>/status``."""
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return int(fields[field].split()[0]) / 1024


def _footprint(cluster: LocalCluster, record: ContainerRecord) -> Footprint:
    status = cluster.node_exec(record.node, ["cat", f"/proc/{record.pid}/status"]).stdout
    return Footprint(record.container, record.node, mebibytes(status, "VmRSS"), mebibytes(status, "VmHWM"))
