"""Where the cgroups of containers lie on the node. Blocks: cgroups are folders."""

import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpushare_plugin.decide.use.cgroups import CgroupOwner, cgroup_owners

MAX_DEPTH = 16
"""Of a folder below the root: a node that is itself a container has its pods about eight deep."""


@dataclass(slots=True)
class CgroupTree:
    """Finds a pod once and then looks only where its containers lie: a node has thousands of cgroups."""

    root: Path
    """Where cgroups of version 2 are mounted."""
    _parents: dict[str, frozenset[Path]] = field(default_factory=dict, init=False)
    """UID of a pod -> folders in which those of its containers lie."""

    @property
    def is_unified(self) -> bool:
        """Whether they are of version 2."""
        return (self.root / "cgroup.controllers").exists()

    def containers(self, pods: Collection[str]) -> dict[CgroupOwner, Path]:
        """Returns the containers of ``pods``, by the UIDs that the kubelet knows, with their folders. The
        sandbox of a pod is one of them."""
        parents = {parent for uid in pods for parent in self._parents.get(uid, ())}
        found = dict(pair for parent in parents for pair in self._in(parent, pods))
        if {owner.pod_uid for owner in found} < set(pods):
            found = dict(self._below(self.root, pods, MAX_DEPTH))
        self._parents = {
            uid: frozenset(path.parent for owner, path in found.items() if owner.pod_uid == uid)
            for uid in pods
        }
        return found

    def _below(self, folder: Path, pods: Collection[str], depth: int) -> Iterator[tuple[CgroupOwner, Path]]:
        containers = dict(self._in(folder, pods))
        yield from containers.items()
        if depth:
            for child in _folders(folder):
                if child not in containers.values():
                    yield from self._below(child, pods, depth - 1)

    def _in(self, folder: Path, pods: Collection[str]) -> Iterator[tuple[CgroupOwner, Path]]:
        for child in _folders(folder):
            owners = cgroup_owners(f"0::/{child.relative_to(self.root)}")
            owner = next((owner for owner in owners if owner.pod_uid in pods), None)
            if owner and owner.container_id:
                yield owner, child


def _folders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:  # its last process has just ended
        return []
