"""What each process of the product holds resident."""

from dataclasses import dataclass

from gpushare_localcluster.cluster import LocalCluster
from gpushare_localcluster.containers import ContainerRecord

SYSTEM = "gpushare-system"


@dataclass(frozen=True, slots=True)
class Footprint:
    """Resident and peak size of one container's process, in MiB."""

    container: str
    node: str
    resident: float
    peak: float


def measure(cluster: LocalCluster) -> list[Footprint]:
    """All running containers of the product, by name."""
    records = [each for each in cluster.containers() if each.namespace == SYSTEM and each.state == "running"]
    return sorted((_footprint(cluster, each) for each in records), key=lambda each: each.container)


def _footprint(cluster: LocalCluster, record: ContainerRecord) -> Footprint:
    status = cluster.node_exec(record.node, ["cat", f"/proc/{record.pid}/status"]).stdout
    fields = dict(line.split(":", 1) for line in status.splitlines())
    return Footprint(record.container, record.node, _mebibytes(fields["VmRSS"]), _mebibytes(fields["VmHWM"]))


def _mebibytes(field: str) -> float:
    return int(field.split()[0]) / 1024
