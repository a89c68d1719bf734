"""What a machine must offer before a cluster can start on it."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpushare_localcluster.errors import LocalClusterError


@dataclass(frozen=True)
class Machine:
    """What the checks need to know of a machine."""

    platform: str
    user_id: int
    filesystems: str
    find_program: Callable[[str], str | None]

    @classmethod
    def this(cls) -> "Machine":
        return cls(
            platform=sys.platform,
            user_id=os.geteuid(),
            filesystems=_filesystems(Path("/proc/filesystems")),
            find_program=shutil.which,
        )


def _filesystems(listing: Path) -> str:
    if not listing.exists():
        return ""
    if "overlay" not in listing.read_text() and shutil.which("modprobe"):
        subprocess.run(["modprobe", "overlay"], capture_output=True, check=False)
    return listing.read_text()


def problems(machine: Machine) -> Sequence[str]:
    """Returns why no cluster can run on a machine and what to do about it; empty if one can."""
    if not machine.platform.startswith("linux"):
        return [f"A local cluster needs Linux, this is {machine.platform}: use a Linux machine or VM."]
    missing = []
    if machine.user_id != 0:
        missing.append("A local cluster needs root for its namespaces: run it with sudo.")
    if "overlay" not in machine.filesystems.split():
        missing.append("The kernel has no overlay file system: load its module `overlay`.")
    if machine.find_program("nsenter") is None:
        missing.append("The program nsenter is missing: install the package util-linux.")
    return missing


def check(machine: Machine) -> None:
    """Raises LocalClusterError with all problems if no cluster can run on a machine."""
    if messages := problems(machine):
        raise LocalClusterError(" ".join(messages))
