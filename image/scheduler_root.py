"""Lays out the image of our kube-scheduler: the program, what it consists of, and the licences of that.

``python image/scheduler_root.py FOLDER [1.36.3]`` prints the version of Kubernetes. Runs before the image's
build, on the machine that builds: scheduler.Dockerfile says why.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpushare_core.process.version import VERSION
from gpushare_localcluster.build.binary import SCHEDULER, ensure_program
from gpushare_localcluster.build.minors import DEFAULT, Minor
from gpushare_localcluster.build.toolchain import exact_go
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError
from sbom import Component, bill, component

PROGRAM = "usr/local/bin/kube-scheduler"
BILL = "usr/share/gpushare/sbom.json"
DOCUMENTS = "usr/share/doc"
LICENCES = ("LICENSE", "LICENCE", "COPYING", "NOTICE")
"""How names of files begin that have to go with a program."""


@dataclass(frozen=True)
class GoModule:
    """A Go module that is a part of the program. ``folder``: its sources."""

    path: str
    version: str
    folder: Path

    def component(self) -> Component:
        return component(self.path, self.version, f"pkg:golang/{self.path}@{self.version}")


def main(folder: Path, kubernetes: str = "") -> None:
    """Raises LocalClusterError where the scheduler is not built of that Kubernetes, or cannot be built."""
    minor = minor_of(kubernetes) if kubernetes else DEFAULT
    go = exact_go(cache_folder(), report=report)
    program = ensure_program(SCHEDULER, minor, report=report, go=go).path
    os.umask(0o022)
    copy(program, folder / PROGRAM)
    (folder / PROGRAM).chmod(0o755)
    parts = [standard_library(go), *modules(go, program, minor)]
    for part in parts:
        for text in licences(part.folder):
            copy(text, folder / DOCUMENTS / part.path / text.name)
    product = component(SCHEDULER.name, VERSION, f"pkg:golang/{SCHEDULER.module}@v{VERSION}")
    content = bill(product, [part.component() for part in parts])
    (folder / BILL).parent.mkdir(parents=True)
    (folder / BILL).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    set_times(folder)
    print(minor.version)


def minor_of(kubernetes: str) -> Minor:
    """Returns the minor that a version, such as ``1.36.3``, or its name says."""
    for minor in SCHEDULER.minors:
        if kubernetes.removeprefix("v") in (minor.name, minor.version.removeprefix("v")):
            return minor
    versions = ", ".join(minor.version.removeprefix("v") for minor in SCHEDULER.minors)
    raise LocalClusterError(
        f"There is no scheduler of Kubernetes {kubernetes!r}; there is one of {versions}. It works with API"
        " servers of every patch version of its minor, and of the next minor."
    )


def modules(go: Path, program: Path, minor: Minor) -> list[GoModule]:
    """Returns what the linker has put into the program, as the program itself says."""
    listed = output([go, "list", "-m", *minor.go_flags, "-f", "{{.Path}}\t{{.Dir}}", "all"])
    folders = dict(line.split("\t") for line in listed.splitlines())
    built: dict[str, Any] = json.loads(output([go, "version", "-m", "-json", str(program)]))
    used = [part.get("Replace", part) for part in built["Deps"]]
    return [GoModule(part["Path"], part["Version"], Path(folders[part["Path"]])) for part in used]


def standard_library(go: Path) -> GoModule:
    version = output([go, "env", "GOVERSION"]).strip().removeprefix("go")
    return GoModule("stdlib", version, go.parents[1])


def licences(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name.upper().startswith(LICENCES):
            yield path


def copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def set_times(folder: Path) -> None:
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (epoch, epoch))


def output(command: Sequence[Path | str]) -> str:
    environment = {**os.environ, "GOTOOLCHAIN": "local"}
    return subprocess.run(
        command, cwd=SCHEDULER.sources, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def report(message: str) -> None:
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), *sys.argv[2:])
    except LocalClusterError as error:
        sys.exit(str(error))
