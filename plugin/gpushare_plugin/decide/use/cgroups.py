"""Which container a process belongs to, by the names of its cgroups.

Kubelets and container runtimes put a pod's UID and a container's ID into the path of a cgroup, each in its
own way: see the table in the tests. Sources: ``pkg/kubelet/cm/cgroup_manager_linux.go`` of Kubernetes, and
``generateCgroupPath``, ``getCgroupsPath`` and their like of containerd, CRI-O, dockershim and cri-dockerd.
"""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple


class CgroupOwner(NamedTuple):
    """A container by the names that the kubelet and the container runtime give it."""

    pod_uid: str
    """The kubelet's: of a static pod the digest of its manifest."""
    container_id: str
    """Without the runtime's prefix; empty where the cgroup is the pod's own."""


_POD = re.compile(r"(?:^|-)pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?$")
_CONTAINER = re.compile(r"(?:^|[-:])([0-9a-f]{64})(?:\.scope)?$")
_MONITOR = "conmon"
"""In the name of a cgroup for CRI-O's process that watches over a container."""


def cgroup_owners(text: str) -> Sequence[CgroupOwner]:
    """Returns the containers around a process, the outermost first. ``text``: its ``/proc/PID/cgroup``.

    There are several where a pod runs containers of its own, or is a node. The hierarchies of cgroups v1 name
    the same container, or none.
    """
    found: dict[CgroupOwner, None] = {}
    for line in text.splitlines():
        _, _, path = line.partition(":")[2].partition(":")
        found.update(dict.fromkeys(_owners(re.split(r"/|(?<=\.slice):", path))))
    named = {owner.pod_uid for owner in found if owner.container_id}
    return [owner for owner in found if owner.container_id or owner.pod_uid not in named]


def _owners(names: Sequence[str]) -> Iterator[CgroupOwner]:
    """A container's cgroup is the first below its pod's that looks like one; it may have others below it."""
    uid = ""
    for name in names:
        if pod := _POD.search(name):
            if uid:
                yield CgroupOwner(uid, "")
            uid = pod[1].replace("_", "-")
        elif uid and _MONITOR not in name and (container := _CONTAINER.search(name)):
            yield CgroupOwner(uid, container[1])
            uid = ""
    if uid:
        yield CgroupOwner(uid, "")
