"""Packages of Debian: fetched into a cache, installed nowhere."""

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpushare_localcluster.build.base_system import base_system
from gpushare_localcluster.build.lock import Report, locked
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

TOOLS = ("apt-get", "apt-config", "dpkg-deb", "tar")


def ensure_packages(names: Sequence[str], *, report: Report) -> Path:
    """Returns a folder with the unpacked files of Debian packages and their dependencies.

    Only the base system is left out, not what else this machine has, so that the folder is the same
    everywhere. Raises LocalClusterError if there is no apt-get, or it cannot fetch the packages.
    """
    cache = cache_folder()
    folder = cache / "debian" / "+".join(sorted(names))
    with locked(cache / "packages.lock", report=report):
        if not folder.exists():
            _check_tools(names)
            report(f"fetching Debian's {', '.join(names)}: about 10 seconds the first time")
            _make(folder, names)
    return folder


def _check_tools(names: Sequence[str]) -> None:
    if missing := [name for name in TOOLS if shutil.which(name) is None]:
        raise LocalClusterError(
            f"Debian's {', '.join(names)} cannot be fetched; this machine lacks {', '.join(missing)}: "
            "use Debian or Ubuntu, or a container of theirs."
        )


def _make(folder: Path, names: Sequence[str]) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        unpacked = Path(scratch, "unpacked")
        unpacked.mkdir()
        for package in _download(names, Path(scratch)):
            _run(["dpkg-deb", "--extract", package, unpacked])
        unpacked.chmod(0o755)
        unpacked.rename(folder)


def _download(names: Sequence[str], scratch: Path) -> list[Path]:
    """Fetches packages by lists of our own: the machine's may be old or missing, and are not to be changed.

    apt-get fetches no package that is installed, so it gets a status file with the base system alone.
    """
    (scratch / "status").write_text(base_system(_status_file().read_text()))
    for name in ("lists/partial", "archives/partial"):
        Path(scratch, name).mkdir(parents=True)
    options = [
        *("-o", f"Dir::State::status={scratch}/status"),
        *("-o", f"Dir::State::lists={scratch}/lists"),
        *("-o", f"Dir::Cache={scratch}"),
        *("-o", f"Dir::Cache::archives={scratch}/archives"),
        *("-o", "APT::Sandbox::User=root"),
        # Nothing is installed, so a package manager at work is no obstacle.
        *("-o", "Debug::NoLocking=true"),
    ]
    _run(["apt-get", "update", "--quiet", *options])
    _run(["apt-get", "install", "--download-only", "--yes", "--no-install-recommends", *options, *names])
    return sorted(Path(scratch, "archives").glob("*.deb"))


def _status_file() -> Path:
    """Returns dpkg's list of what is installed on this machine."""
    (assignment,) = shlex.split(_run(["apt-config", "shell", "status", "Dir::State::status/f"]))
    return Path(assignment.partition("=")[2])


def _run(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"{command[0]} {command[1]} failed: {done.stderr.strip()}")
    return done.stdout
