"""Programs from their Go modules, such as Helm and Volcano's own scheduler: each built once, cached beside
the cluster's program."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SOURCES, WITHOUT_C, compile_program, fingerprint
from gpushare_localcluster.build.kept_builds import delete_outdated, note_use
from gpushare_localcluster.build.lock import Report, locked
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

VOLCANO_MODULE = "volcano.sh/volcano"
VOLCANO_CRDS = "config/crd/volcano/bases"
"""In the module."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """`folder`, of the sources and of the cache, has the module's `go.mod`; `programs` are name -> package.

    `variables` are the compiler's, asked for when something is to be built.
    """

    folder: str
    programs: Mapping[str, str]
    notice: str
    tags: str = ""
    variables: Callable[[Report], Mapping[str, str]] = field(default=lambda _report: WITHOUT_C)


HELM = Module(
    folder="helm",
    programs={"helm": "helm.sh/helm/v3/cmd/helm"},
    notice="building Helm: 90 seconds where two cores are idle, once",
)
VOLCANO = Module(
    folder="volcano",
    programs={"volcano-scheduler": "."},
    notice="building Volcano's scheduler: about 2 minutes, once",
)


@dataclass(frozen=True)
class Volcano:
    """`scheduler` is the program, `crds` a folder with its CustomResourceDefinitions."""

    scheduler: Path
    crds: Path


def ensure_helm(*, report: Report, environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the program, built if it was not built before. Raises LocalClusterError if that fails."""
    return ensure_module(HELM, report=report, environment=environment) / "helm"


def ensure_volcano(*, report: Report, environment: Mapping[str, str] = os.environ) -> Volcano:
    """Returns the scheduler, built if it was not built before. Raises LocalClusterError if that fails."""

    def add_crds(go: Path, sources: Path, folder: Path) -> None:
        shutil.copytree(_module_folder(go, sources) / VOLCANO_CRDS, folder / "crds", dirs_exist_ok=True)

    folder = ensure_module(VOLCANO, report=report, environment=environment, finish=add_crds)
    return Volcano(scheduler=folder / "volcano-scheduler", crds=folder / "crds")


def ensure_module(
    module: Module,
    *,
    report: Report,
    environment: Mapping[str, str] = os.environ,
    finish: Callable[[Path, Path, Path], None] = lambda _go, _sources, _folder: None,
) -> Path:
    """Returns the folder with the module's programs, built if they were not built before. Raises
    LocalClusterError if that fails."""
    cache, sources = cache_folder(environment), SOURCES / module.folder
    go = toolchain.find_go(cache, report=report)
    folder = cache / module.folder / fingerprint(sources, f"{toolchain.version(go)}{module.tags}")
    note_use(folder)
    if _missing(module, folder):
        with locked(cache / "lock", report=report):
            if missing := _missing(module, folder):
                report(module.notice)
                variables = module.variables(report)
                flags = ["-trimpath", "-buildvcs=false", "-tags", module.tags, "-ldflags", "-s -w"]
                for name, package in missing.items():
                    unfinished = folder / f"{name}.unfinished"
                    command: list[Path | str] = [go, "build", *flags, "-o", unfinished, package]
                    compile_program(command, sources, unfinished, report=report, variables=variables)
                    finish(go, sources, folder)
                    unfinished.rename(folder / name)
                delete_outdated(folder.parent)
    return folder


def _missing(module: Module, folder: Path) -> Mapping[str, str]:
    return {name: package for name, package in module.programs.items() if not (folder / name).exists()}


def _module_folder(go: Path, sources: Path) -> Path:
    command = [str(go), "list", "-m", "-f", "{{.Dir}}", VOLCANO_MODULE]
    done = subprocess.run(command, cwd=sources, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"The Go module {VOLCANO_MODULE} is not there:\n{done.stderr.strip()}")
    return Path(done.stdout.strip())
