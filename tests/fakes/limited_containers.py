"""Containers as a runtime with NVIDIA's toolkit starts them, as far as cgroups and hooks go.

Cgroups and /proc are folders of the test: no privilege, and no particular version of cgroups, is needed.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes import toolkit_hook


@dataclass(slots=True)
class LimitedContainers:
    """On a node whose files are in ``folder``. ``library``: the driver's."""

    folder: Path
    library: Path
    toolkit: str = "1.20.1"
    """An older one has no hook that limits."""
    _pid: int = field(default=100, init=False)

    def __post_init__(self) -> None:
        self.cgroups.mkdir(parents=True)
        (self.cgroups / "cgroup.controllers").write_text("cpu memory\n")

    @property
    def cgroups(self) -> Path:
        """Where the node has its cgroups, of version 2."""
        return self.folder / "cgroups"

    def cgroup(self, uid: str, identifier: str) -> Path:
        """Of a container, as containerd and a kubelet with cgroupfs name it."""
        return self.cgroups / "kubepods" / f"pod{uid}" / identifier

    def sandbox(self, uid: str) -> None:
        self.cgroup(uid, "5" * 64).mkdir(parents=True)

    def start(self, uid: str, identifier: str, variables: Mapping[str, str], cards: Sequence[str]) -> str:
        """Returns why the container does not start, or an empty text. ``variables``: in its environment."""
        cgroup = self.cgroup(uid, identifier)
        cgroup.mkdir(parents=True)
        self._pid += 1
        process = self.folder / "proc" / str(self._pid)
        process.mkdir(parents=True)
        (process / "cgroup").write_text(f"0::/{cgroup.relative_to(self.cgroups)}\n")
        if self.toolkit < "1.20.1":
            return ""
        return self._hook(self._bundle(variables), cards)

    def end(self, uid: str, identifier: str, cards: Sequence[str] = ()) -> None:
        """The driver forgets the limit of a cgroup that is removed."""
        cgroup = self.cgroup(uid, identifier)
        toolkit_hook.set_limits(self.library, cgroup, cards, hard=toolkit_hook.UNLIMITED)
        cgroup.rmdir()

    def _bundle(self, variables: Mapping[str, str]) -> Path:
        bundle = self.folder / "bundles" / str(self._pid)
        bundle.mkdir(parents=True)
        environment = [f"{name}={value}" for name, value in variables.items()]
        (bundle / "config.json").write_text(json.dumps({"process": {"env": environment}}))
        return bundle

    def _hook(self, bundle: Path, cards: Sequence[str]) -> str:
        command = [sys.executable, toolkit_hook.__file__, "--library", str(self.library)]
        command += [word for card in cards for word in ("--gpu-id", card)]
        command += ["--cgroups", str(self.cgroups), "--proc", str(self.folder / "proc")]
        state = json.dumps({"ociVersion": "1.0.2", "pid": self._pid, "bundle": str(bundle)})
        ran = subprocess.run(command, input=state, capture_output=True, text=True, check=False)
        return ran.stderr.strip() if ran.returncode else ""
