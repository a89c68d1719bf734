"""Volcano's own scheduler: built from its Go module once, cached beside the local cluster's program."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SOURCES, compile_program, fingerprint
from gpushare_localcluster.build.lock import Report, locked
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

MODULE = "volcano.sh/volcano"
CRDS = "config/crd/volcano/bases"
"""In the module."""


@dataclass(frozen=True)
class Volcano:
    """`scheduler` is the program, `crds` a folder with its CustomResourceDefinitions."""

    scheduler: Path
    crds: Path


def ensure_volcano(*, report: Report, environment: Mapping[str, str] = os.environ) -> Volcano:
    """Returns Volcano's scheduler, and builds it if it was not built before: two minutes.

    Raises LocalClusterError if it cannot be built.
    """
    cache = cache_folder(environment)
    sources = SOURCES / "volcano"
    go = toolchain.find_go(cache, report=report)
    folder = cache / "volcano" / fingerprint(sources, toolchain.version(go))
    built = Volcano(scheduler=folder / "volcano-scheduler", crds=folder / "crds")
    if not built.scheduler.exists():
        with locked(cache / "lock", report=report):
            _build_once(go, sources, built, report=report)
    return built


def _build_once(go: Path, sources: Path, built: Volcano, *, report: Report) -> None:
    if not built.scheduler.exists():
        report("building Volcano's scheduler: about 2 minutes, once")
        _build(go, sources, built, report=report)


def _build(go: Path, sources: Path, built: Volcano, *, report: Report) -> None:
    unfinished = built.scheduler.with_suffix(".unfinished")
    flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
    compile_program([go, "build", *flags, "-o", str(unfinished), "."], sources, unfinished, report=report)
    shutil.copytree(_module_folder(go, sources) / CRDS, built.crds, dirs_exist_ok=True)
    unfinished.rename(built.scheduler)


def _module_folder(go: Path, sources: Path) -> Path:
    command = [str(go), "list", "-m", "-f", "{{.Dir}}", MODULE]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"The Go module {MODULE} is not there:\n{done.stderr.strip()}")
    return Path(done.stdout.strip())
