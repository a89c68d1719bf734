"""Where the cgroups of containers lie on the node. Blocks: cgroups are folders."""

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpushare_plugin.decide.isolation.driver_cgroups import NodeCgroups
from gpushare_plugin.decide.use.cgroups import CgroupOwner, cgroup_owners

MAX_DEPTH = 16
"""Of folders below the root: where a node is itself a container its pods lie about eight deep."""
CONTAINER_PROCESSES = "container"
"""The cgroup into which crun puts a container's processes, below the container's own."""

_Found = Iterator[tuple[CgroupOwner, Path]]


@dataclass(slots=True)
class CgroupTree:
    """Searches for a pod once, and then looks where its containers lie: a node has thousands of cgroups."""

    root: Path
    """Where the node's cgroups are mounted."""
    _parents: dict[str, frozenset[Path]] = field(default_factory=dict, init=False)
    """The kubelet's UID of a pod -> folders in which those of its containers lie."""

    def look(self, pods: Collection[str]) -> NodeCgroups:
        """Returns the containers of ``pods``, sandboxes among them.

        ``pods``: UIDs as the kubelet knows them.
        """
        if not (self.root / "cgroup.controllers").exists():
            return NodeCgroups(root=str(self.root), unified=False)
        parents = {parent for uid in pods for parent in self._parents.get(uid, ())}
        found = dict(pair for parent in parents for pair in self._in(parent, pods))
        if set(pods) - {owner.pod_uid for owner in found}:
            # A container may make a cgroup in its own that is named like another's: of two the outer counts.
            below = sorted(self._below(self.root, pods, MAX_DEPTH), key=lambda pair: -len(pair[1].parts))
            found = dict(below)
        self._parents = {
            uid: frozenset(path.parent for owner, path in found.items() if owner.pod_uid == uid)
            for uid in pods
        }
        containers = {owner: _with_processes(path) for owner, path in found.items()}
        return NodeCgroups(root=str(self.root), containers=containers)

    def _below(self, folder: Path, pods: Collection[str], depth: int) -> _Found:
        containers = dict(self._in(folder, pods))
        yield from containers.items()
        for child in _folders(folder) if depth else ():
            if child not in containers.values():
                yield from self._below(child, pods, depth - 1)

    def _in(self, folder: Path, pods: Collection[str]) -> _Found:
        for child in _folders(folder):
            owners = cgroup_owners(f"0::/{child.relative_to(self.root)}")
            owner = next((owner for owner in owners if owner.pod_uid in pods), None)
            if owner and owner.container_id:
                yield owner, child


def _with_processes(path: Path) -> Sequence[str]:
    below = path / CONTAINER_PROCESSES
    return (str(path), str(below)) if below.is_dir() else (str(path),)


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # its last process has just ended
        return []
