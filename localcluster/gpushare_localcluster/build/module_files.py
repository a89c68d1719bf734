"""Writes the module file of each minor: ``python -m gpushare_localcluster.build.module_files``.

Everything but the minor itself follows from Kubernetes' own module file: the versions of its staging modules,
which it names by relative paths only, of all it needs, and Go's compatibility settings.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SOURCES
from gpushare_localcluster.build.minors import MINORS, Minor, minor_named
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

MODULE = "gpushare.io/localcluster"
KUBERNETES = "k8s.io/kubernetes"
STAGING = re.compile(r"^\s*(k8s\.io/\S+) => \./staging/", re.MULTILINE)
NEAREST = {("k8s.io/endpointslice", "v0.32.13"): "v0.32.12"}
"""What is served instead of a module's version that is not."""
SETTING = re.compile(r"^godebug \S+=\S+$", re.MULTILINE)


def main(names: Sequence[str]) -> int:
    """Writes the files of the minors that are named, of all if none is."""
    go = toolchain.find_go(cache_folder(), report=_report)
    for minor in [minor_named(name) for name in names] or MINORS:
        _report(f"writing {minor.module_file}")
        write(go, minor)
    return 0


def write(go: Path, minor: Minor) -> None:
    """Raises LocalClusterError with Go's errors."""
    file = SOURCES / minor.module_file
    file.parent.mkdir(exist_ok=True)
    file.write_text(first_text(minor, _module_file_of_kubernetes(go, minor)))
    (SOURCES / minor.sum_file).write_text("")
    # Not `go mod tidy`, which would want the packages of all minors in each.
    _run([go, "list", "-mod=mod", *minor.go_flags, "-deps", "-test", "./..."])


def first_text(minor: Minor, kubernetes: str) -> str:
    """Returns a module file that requires Kubernetes alone: Go finds out the rest. ``kubernetes``: the module
    file of Kubernetes."""
    go = ".".join(map(str, toolchain.MINIMUM))
    staging = sorted(set(STAGING.findall(kubernetes)))
    versions = {name: NEAREST.get((name, minor.staging_version), minor.staging_version) for name in staging}
    replaced = "".join(f"\t{name} => {name} {version}\n" for name, version in versions.items())
    settings = "".join(f"{line}\n" for line in SETTING.findall(kubernetes))
    return (
        f"module {MODULE}\n\ngo {go}.0\n\n{settings}\nrequire {KUBERNETES} {minor.version}\n\n"
        f"// Written by gpushare_localcluster/build/module_files.py.\nreplace (\n{replaced})\n"
    )


def _module_file_of_kubernetes(go: Path, minor: Minor) -> str:
    answer = json.loads(_run([go, "mod", "download", "-json", f"{KUBERNETES}@{minor.version}"]))
    return Path(answer["GoMod"]).read_text()


def _run(command: Sequence[Path | str]) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    done = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"{' '.join(map(str, command))}:\n{done.stderr.strip()}")
    return done.stdout


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
