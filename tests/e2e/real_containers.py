"""Clusters whose containers are real: of containerd and runc; and what the host's kernel has of them."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.e2e.observe import PODS, Json, get

from gpushare_localcluster.build.container_runtime import ContainerRuntime, ensure_runtime
from gpushare_localcluster.cluster import LocalCluster, to_stderr
from gpushare_localcluster.config import ClusterConfig, Containerd

CGROUPS = Path("/sys/fs/cgroup")


@contextmanager
def real_cluster(
    folder: Path, images: Sequence[Path], *, runtime: ContainerRuntime | None = None
) -> Iterator[LocalCluster]:
    """A cluster of one control plane and the worker gpu-1 whose containers are real."""
    containerd = Containerd(runtime=runtime or ensure_runtime(report=to_stderr), images=images)
    with LocalCluster(folder) as running:
        running.start(ClusterConfig(nodes=ClusterConfig.of_size(workers=1).nodes, containerd=containerd))
        running.wait_ready()
        yield running


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
        with suppress(ProcessLookupError):  # it ended with one that was killed before it
            os.kill(pid, signal.SIGKILL)
