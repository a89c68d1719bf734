"""The configuration of a cluster, as the supervisor reads it."""

import sys
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpushare_localcluster.build.binary import Binary
from gpushare_localcluster.build.container_runtime import ContainerRuntime
from gpushare_localcluster.build.minors import Minor, chosen_minor

PROGRAMS_IMAGE = "programs.tar"
CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class NodeConfig:
    """A node. A control-plane node runs kube-scheduler and carries the usual label and NoSchedule taint.

    `disks` are small file systems in memory, for tests of full disks: folder -> size, such as 4m. The folder
    is one of those that survive reboots, or below one. `kubernetes` is the kubelet's minor where it is not
    the cluster's.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    control_plane: bool = False
    disks: Mapping[str, str] = field(default_factory=dict)
    kubernetes: Minor | None = None

    def as_json(self, binaries: Mapping[Minor, Binary]) -> dict[str, Any]:
        node = {"name": self.name, "labels": dict(self.labels), "controlPlane": self.control_plane}
        disks = {"disks": dict(self.disks)} if self.disks else {}
        kubelet = {"kubelet": str(binaries[self.kubernetes].path)} if self.kubernetes else {}
        return {**node, **disks, **kubelet}


@dataclass(frozen=True)
class Containerd:
    """Real containers of real images, instead of processes that see the host's files.

    `runtime` comes from `ensure_runtime`; `images` are archives of images that every node gets in addition to
    kube-scheduler's.
    """

    runtime: ContainerRuntime
    images: Sequence[Path] = ()

    def as_json(self, programs: Path) -> dict[str, Any]:
        images = [str(path) for path in (programs, *self.images)]
        programs_of_runtime = [str(self.runtime.containerd), str(self.runtime.runc)]
        return {"programs": programs_of_runtime, "plugins": str(self.runtime.plugins), "images": images}


@dataclass(frozen=True)
class ClusterConfig:
    """A cluster.

    `listen` is the host's address of the API; port 0 takes a free one. `kubernetes` is the one that
    GPUSHARE_KUBERNETES chooses, or the default. `component_flags` are added to the
    command lines of `etcd`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler` and `kubelet`.
    Containers find the programs in `container_path` whatever their image; `readable` are the folders that
    containers without root rights need.
    `free_service_address` leaves the address at which pods reach the API to a proxy, see
    `LocalCluster.control_plane_command`.
    """

    nodes: Sequence[NodeConfig]
    listen: str = "127.0.0.1:0"
    component_flags: Mapping[str, Sequence[str]] = field(default_factory=dict)
    container_path: Sequence[Path] = field(default_factory=lambda: python_programs())
    readable: Sequence[Path] = field(default_factory=lambda: python_folders())
    containerd: Containerd | None = None
    free_service_address: bool = False
    kubernetes: Minor = field(default_factory=chosen_minor)

    @classmethod
    def of_size(cls, *, workers: int, control_planes: int = 1) -> "ClusterConfig":
        """Returns a cluster of nodes `control-plane-1`... and `gpu-1`..."""
        return cls(nodes=[*control_plane_nodes(control_planes), *worker_nodes(workers)])

    @property
    def minors(self) -> Set[Minor]:
        """The cluster's, and those of kubelets."""
        return {self.kubernetes, *(node.kubernetes for node in self.nodes if node.kubernetes)}

    def as_json(self, *, directory: Path, binaries: Mapping[Minor, Binary], detach: bool) -> dict[str, Any]:
        """Returns the content of the supervisor's configuration file. ``binaries`` are those of `minors`."""
        containerd, binary = self.containerd, binaries[self.kubernetes]
        return {
            "containerd": containerd.as_json(directory / PROGRAMS_IMAGE) if containerd else {},
            "directory": str(directory),
            "kubernetes": self.kubernetes.name,
            "listen": self.listen,
            "detach": detach,
            "freeServiceAddress": self.free_service_address,
            "nodes": [node.as_json(binaries) for node in self.nodes],
            "componentFlags": {name: list(flags) for name, flags in self.component_flags.items()},
            "image": {
                "path": [str(path) for path in (binary.programs, *self.container_path)],
                "readable": [str(path) for path in (binary.path, *self.readable)],
            },
        }


def control_plane_nodes(count: int) -> list[NodeConfig]:
    return [NodeConfig(name=f"control-plane-{number}", control_plane=True) for number in range(1, count + 1)]


def worker_nodes(count: int) -> list[NodeConfig]:
    return [NodeConfig(name=f"gpu-{number}") for number in range(1, count + 1)]


def python_programs() -> list[Path]:
    """Returns the folder of this Python environment's console scripts."""
    return [Path(sys.prefix) / "bin"]


def python_folders() -> list[Path]:
    """Returns this Python environment, its interpreter, and the sources it may point to."""
    return [Path(sys.prefix), Path(sys.base_prefix), CHECKOUT]
