"""Helm, and Volcano's own scheduler: each built from its Go module once, cached beside the cluster's
program."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SOURCES, compile_program, fingerprint
from gpushare_localcluster.build.lock import Report, locked
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

HELM = "helm.sh/helm/v3/cmd/helm"
VOLCANO = "volcano.sh/volcano"
VOLCANO_CRDS = "config/crd/volcano/bases"
"""In the module."""


@dataclass(frozen=True)
class Volcano:
    """`scheduler` is the program, `crds` a folder with its CustomResourceDefinitions."""

    scheduler: Path
    crds: Path


def ensure_helm(*, report: Report, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the program, built if it was not built before. Raises LocalClusterError if that fails."""
    cache, notice = cache_folder(environment), "building Helm: 90 seconds where two cores are idle, once"
    return _ensure(cache / "helm", "helm", HELM, notice=notice, report=report)


def ensure_volcano(*, report: Report, environment: Mapping[str, str] = os.environ) -> Volcano:
    """Returns the scheduler, built if it was not built before. Raises LocalClusterError if that fails."""

    def add_crds(go: Path, sources: Path, folder: Path) -> None:
        shutil.copytree(_module_folder(go, sources) / VOLCANO_CRDS, folder / "crds", dirs_exist_ok=True)

    cache, notice = cache_folder(environment), "building Volcano's scheduler: about 2 minutes, once"
    folder, name = cache / "volcano", "volcano-scheduler"
    scheduler = _ensure(folder, name, ".", notice=notice, report=report, finish=add_crds)
    return Volcano(scheduler=scheduler, crds=scheduler.with_name("crds"))


def _ensure(
    folder: Path,
    name: str,
    package: str,
    *,
    notice: str,
    report: Report,
    finish: Callable[[Path, Path, Path], None] = lambda _go, _sources, _folder: None,
) -> Path:
    """Returns the program of the Go module of the name that `folder`, of its builds, has."""
    cache, sources = folder.parent, SOURCES / folder.name
    go = toolchain.find_go(cache, report=report)
    program = folder / fingerprint(sources, toolchain.version(go)) / name
    if program.exists():
        return program
    with locked(cache / "lock", report=report):
        if not program.exists():
            report(notice)
            unfinished = program.with_suffix(".unfinished")
            flags = ["-trimpath", "-buildvcs=false", "-ldflags", "-s -w"]
            command: list[Path | str] = [go, "build", *flags, "-o", unfinished, package]
            compile_program(command, sources, unfinished, report=report)
            finish(go, sources, program.parent)
            unfinished.rename(program)
    return program


def _module_folder(go: Path, sources: Path) -> Path:
    command = [str(go), "list", "-m", "-f", "{{.Dir}}", VOLCANO]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"The Go module {VOLCANO} is not there:\n{done.stderr.strip()}")
    return Path(done.stdout.strip())
