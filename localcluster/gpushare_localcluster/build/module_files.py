"""Writes the module files of each minor, the local cluster's and the scheduler's:
``python -m gpushare_localcluster.build.module_files``.

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
from gpushare_localcluster.build.binary import LOCALCLUSTER, SCHEDULER, GoProgram
from gpushare_localcluster.build.minors import MINORS, Minor, minor_named
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

KUBERNETES = "k8s.io/kubernetes"
STAGING = re.compile(r"^\s*(k8s\.io/\S+) => \./staging/", re.MULTILINE)
NEAREST = {("k8s.io/endpointslice", "v0.32.13"): "v0.32.12"}
"""What is served instead of a module's version that is not."""
SETTING = re.compile(r"^godebug \S+=\S+$", re.MULTILINE)


def main(names: Sequence[str]) -> int:
    """Writes the files of the minors that are named, of all if none is."""
    go = toolchain.find_go(cache_folder(), report=_report)
    minors = [minor_named(name) for name in names] or MINORS
    for program in (LOCALCLUSTER, SCHEDULER):
        for minor in minors:
            if minor in program.minors:
                _report(f"writing {program.sources.name}/{minor.module_file}")
                write(go, program, minor)
    return 0


def write(go: Path, program: GoProgram, minor: Minor) -> None:
    """Raises LocalClusterError with Go's errors."""
    file = program.sources / minor.module_file
    file.parent.mkdir(exist_ok=True)
    kubernetes = _module_file_of_kubernetes(go, program, minor)
    file.write_text(first_text(program.module, minor, kubernetes))
    (program.sources / minor.sum_file).write_text("")
    # Not `go mod tidy`, which would want the packages of all minors in each.
    _run([go, "list", "-mod=mod", *minor.go_flags, "-deps", "-test", "./..."], program.sources)


def first_text(module: str, minor: Minor, kubernetes: str) -> str:
    """Returns a file of the Go module ``module`` that requires Kubernetes alone: Go finds out the rest.
    ``kubernetes``: the module file of Kubernetes."""
    go = ".".join(map(str, toolchain.MINIMUM))
    staging = sorted(set(STAGING.findall(kubernetes)))
    versions = {name: NEAREST.get((name, minor.staging_version), minor.staging_version) for name in staging}
    replaced = "".join(f"\t{name} => {name} {version}\n" for name, version in versions.items())
    settings = "".join(f"{line}\n" for line in SETTING.findall(kubernetes))
    return (
        f"module {module}\n\ngo {go}.0\n\n{settings}\nrequire {KUBERNETES} {minor.version}\n\n"
        f"// Written by gpushare_localcluster/build/module_files.py.\nreplace (\n{replaced})\n"
    )


def _module_file_of_kubernetes(go: Path, program: GoProgram, minor: Minor) -> str:
    wanted = f"{KUBERNETES}@{minor.version}"
    answer = json.loads(_run([go, "mod", "download", "-json", wanted], program.sources))
    return Path(answer["GoMod"]).read_text()


def _run(command: Sequence[Path | str], sources: Path) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    done = subprocess.run(command, cwd=sources, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise LocalClusterError(f"{' '.join(map(str, command))}:\n{done.stderr.strip()}")
    return done.stdout


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
