"""Containers of containerd, as the host's kernel has them."""

import os
import signal
from pathlib import Path

from tests.e2e.observe import PODS, Json, get

from gpushare_localcluster.cluster import LocalCluster

CGROUPS = Path("/sys/fs/cgroup")


def cgroup_of(container: Json) -> Path:
    """Returns the folder of a container, by its entry in ``containerStatuses``."""
    name = str(container["containerID"]).rpartition("/")[2]
    return next(
        path for root in (CGROUPS / "memory", CGROUPS) for path in root.glob(f"localcluster-*/**/{name}")
    )


def processes_of(container: Json) -> list[int]:
    """Returns its PIDs on the host, the first process first."""
    return [int(pid) for pid in (cgroup_of(container) / "cgroup.procs").read_text().split()]


def kill_container(cluster: LocalCluster, namespace: str, pod: str) -> None:
    """Kills all processes of a pod's only container, which the kubelet then restarts."""
    (container,) = get(cluster, f"{PODS.format(namespace=namespace)}/{pod}")["status"]["containerStatuses"]
    for pid in processes_of(container):
        os.kill(pid, signal.SIGKILL)
