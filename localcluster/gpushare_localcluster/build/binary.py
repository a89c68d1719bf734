"""Programs of Kubernetes' modules, of each minor: built once, cached by the content of their sources."""

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.kept_builds import delete_outdated, note_use
from gpushare_localcluster.build.lock import Report, locked
from gpushare_localcluster.build.minors import CHOICE, DEFAULT, MINORS, Minor, chosen_minor
from gpushare_localcluster.build.progress import BuildProgress, Pace, run_watched, terminal_of
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError

SOURCES = Path(__file__).resolve().parents[2]
PREBUILT = "GPUSHARE_LOCALCLUSTER_BINARY"
WITHOUT_C = {"CGO_ENABLED": "0"}
MODULE_FILES = ("go.mod", "go.sum")
VERSION_LINE = re.compile(r'^VERSION = "(.*)"$', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class GoProgram:
    """A Go program of Kubernetes' modules. ``sources`` has a module file for each of ``minors``.

    Its builds are in ``folder``, below the cache; each has links to it by the names in ``links``, and
    beside it ``companions``: programs of the same module, whose packages are in folders of their names.
    ``metadata`` follows Kubernetes' version in its own, after a plus sign. ``version_variable`` is the one of
    its Go code that gets gpushare's version.
    """

    name: str
    sources: Path
    notice: str
    links: Sequence[str]
    companions: Sequence[str] = ()
    folder: str = ""
    metadata: str = ""
    version_variable: str = ""
    minors: Sequence[Minor] = field(default=MINORS)

    @property
    def module(self) -> str:
        """The name of its Go module."""
        return f"gpushare.io/{self.sources.name}"

    def version(self, minor: Minor) -> str:
        return f"{minor.version}+{self.metadata}" if self.metadata else minor.version

    def own_flags(self) -> Sequence[str]:
        """Returns what the linker has to be told besides Kubernetes' version."""
        return [f"-X {self.version_variable}={gpushare_version()}"] if self.version_variable else []


def gpushare_version() -> str:
    """Returns the version that the checkout is of. Raises LocalClusterError outside of one."""
    path = SOURCES.parent / "core/gpushare_core/process/version.py"
    try:
        found = VERSION_LINE.search(path.read_text())
    except OSError as error:
        raise LocalClusterError(f"gpushare's version cannot be read: {error}") from error
    if not found:
        raise LocalClusterError(f"{path} does not say gpushare's version.")
    return found[1]


LOCALCLUSTER = GoProgram(
    name="localcluster",
    sources=SOURCES,
    notice="the local cluster of Kubernetes {minor}: about 5 minutes the first time, "
    "20 seconds after an edit",
    links=("kube-scheduler", "pause"),
    companions=("kubectl",),
)
SCHEDULER = GoProgram(
    name="gpushare-scheduler",
    sources=SOURCES.parent / "scheduler",
    notice="our kube-scheduler {minor}: about 20 seconds after the local cluster, minutes before it",
    links=("kube-scheduler",),
    folder="scheduler",
    metadata="gpushare",
    version_variable="gpushare.io/scheduler/internal/metrics.Version",
    minors=[minor for minor in MINORS if minor.number >= 35],
)
"""Of the checkout, for the clusters of those who develop it."""


@dataclass(frozen=True)
class Binary:
    """`path` is the program, `programs` a folder with links to it under the components' usual names."""

    path: Path
    programs: Path
    minor: Minor = DEFAULT

    @property
    def kubectl(self) -> Path:
        return self.programs / "kubectl"


def ensure_binary(
    *, report: Report, minor: Minor | None = None, environment: Mapping[str, str] = os.environ
) -> Binary:
    """Returns the program that GPUSHARE_LOCALCLUSTER_BINARY names, else the one of these sources, built if
    it was not built before. Raises LocalClusterError if it cannot be built.

    ``minor``: the one that the environment chooses where it is None.
    """
    cache, chosen = cache_folder(environment), chosen_minor(environment)
    minor = minor or chosen
    if (prebuilt := environment.get(PREBUILT)) and minor == chosen:
        return _use_prebuilt(Path(prebuilt), cache, minor)
    if not (LOCALCLUSTER.sources / "go.mod").exists():
        raise LocalClusterError(
            f"The local cluster's Go sources are not in {LOCALCLUSTER.sources}: run it from a checkout of the"
            f" project, or name a built binary in {PREBUILT}."
        )
    return ensure_program(LOCALCLUSTER, minor, report=report, environment=environment)


def ensure_program(
    program: GoProgram,
    minor: Minor,
    *,
    report: Report,
    environment: Mapping[str, str] = os.environ,
    go: Path | None = None,
) -> Binary:
    """Returns a program, built if it was not built before. Raises LocalClusterError if it cannot be built.

    ``go``: the compiler, where it shall not be any that is new enough.
    """
    cache = cache_folder(environment)
    go = go or toolchain.find_go(cache, report=report)
    compiler = toolchain.version(go) + environment.get("GOARCH", "")
    folder = cache / program.folder / build_name(program, minor, compiler)
    built = folder / program.name
    note_use(folder)
    # No lock where there is nothing to build: another process may be building something else.
    if not built.exists():
        with locked(cache / "lock", report=report):
            # Another process may have built it meanwhile.
            if not built.exists():
                build(go, program, folder, minor, report=report)
                delete_outdated(folder.parent)
    return _link(built, folder, minor, links=dict.fromkeys(program.links, built))


def build_name(program: GoProgram, minor: Minor, compiler: str) -> str:
    """Returns the name of a build's folder, such as ``1.34-62c87249b7f9023e``."""
    files = (minor.module_file, minor.sum_file)
    made_by = compiler + "".join(program.own_flags())
    return f"{minor.name}-{fingerprint(program.sources, made_by, module_files=files)}"


def fingerprint(sources: Path, compiler: str, *, module_files: Sequence[str] = MODULE_FILES) -> str:
    """Returns a hash of all that the result of the build depends on."""
    digest = hashlib.sha256(compiler.encode())
    for path in [*source_files(sources), *(sources / name for name in module_files)]:
        digest.update(f"\0{path.relative_to(sources)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def source_files(sources: Path) -> list[Path]:
    """Returns the Go files and the files they embed. A module in a folder below is another program."""
    files = [path for suffix in ("go", "yaml") for path in sources.rglob(f"*.{suffix}")]
    modules = [path.parent for path in sources.rglob("*/go.mod")]
    compiled = [path for path in files if not path.name.endswith("_test.go")]
    own = [path for path in compiled if not any(path.is_relative_to(module) for module in modules)]
    return sorted(own)


def build_command(program: GoProgram, output: Path, minor: Minor, *, package: str = ".") -> Sequence[str]:
    """Returns the arguments of `go`. They set the version: clients cannot parse the apiserver's default."""
    version = "k8s.io/component-base/version"
    flags = [
        "-s -w",
        f"-X {version}.gitVersion={program.version(minor)}",
        f"-X {version}.gitMajor={minor.major}",
        f"-X {version}.gitMinor={minor.number}",
        *program.own_flags(),
    ]
    linking = ["-ldflags", " ".join(flags)]
    return ["build", "-trimpath", "-buildvcs=false", *minor.go_flags, *linking, "-o", str(output), package]


def build(go: Path, program: GoProgram, folder: Path, minor: Minor, *, report: Report) -> None:
    """Compiles into `folder`; a build that fails or is interrupted leaves no program there.

    Raises LocalClusterError with the compiler's errors.
    """
    report(f"building {program.notice.format(minor=minor.name)}")
    unfinished = folder / "unfinished"
    packages = {unfinished: "."} | {folder / name: f"./{name}" for name in program.companions}
    for output, package in packages.items():
        arguments = build_command(program, output, minor, package=package)
        compile_program([go, *arguments], program.sources, output, report=report)
    unfinished.rename(folder / program.name)


def compile_program(
    command: Sequence[Path | str],
    sources: Path,
    output: Path,
    *,
    report: Report,
    variables: Mapping[str, str] = WITHOUT_C,
) -> None:
    """Runs the compiler, `go build ... PACKAGE`, in `sources`; it writes `output`. Raises LocalClusterError
    with its errors."""
    output.parent.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, **variables, "GOTOOLCHAIN": "local"}
    progress = BuildProgress(report, terminal=terminal_of(sys.stderr))
    stale = _stale_packages(command, sources, environment, progress)
    pace = Pace(output.parent.parent / "pace")
    progress.total, progress.expected = len(stale), pace.seconds(len(stale))
    errors: list[str] = []

    def take(line: str) -> None:
        if line not in stale:
            errors.append(line)
            return
        progress.done += 1
        progress.stage = "linking" if progress.done >= progress.total else ""

    go, verb, *arguments = command
    status = run_watched(
        [go, verb, "-v", *arguments], progress, take, folder=sources, environment=environment
    )
    if status != 0:
        text = "\n".join(errors).strip()
        raise LocalClusterError(f"What is in {sources} does not build:\n{text}")
    pace.remember(progress.done, progress.seconds)
    report(f"built in {progress.seconds:.0f} s")


def _stale_packages(
    command: Sequence[Path | str], sources: Path, environment: Mapping[str, str], progress: BuildProgress
) -> frozenset[str]:
    """Returns the packages that the compiler has to compile, by their import paths; none where it does not
    say. Fetches the modules."""
    go, package = command[0], command[-1]
    modules = [argument for argument in command if str(argument).startswith(("-modfile=", "-tags="))]
    flags = ("-trimpath", "-buildvcs=false", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}")
    progress.stage = "finding out what is to be compiled"
    lines: list[str] = []
    status = run_watched(
        [go, "list", *modules, *flags, package],
        progress,
        lines.append,
        folder=sources,
        environment=environment,
        is_stdout_taken=True,
    )
    progress.stage = ""
    return frozenset(line for line in lines if line and " " not in line) if status == 0 else frozenset()


def _use_prebuilt(binary: Path, cache: Path, minor: Minor) -> Binary:
    companions = {name: binary.resolve().parent / name for name in LOCALCLUSTER.companions}
    for path in (binary, *companions.values()):
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise LocalClusterError(
                f"{PREBUILT} names {binary}, and {path} is not an executable file: correct or unset it."
            )
    name = hashlib.sha256(str(binary.resolve()).encode()).hexdigest()[:16]
    links = dict.fromkeys(LOCALCLUSTER.links, binary.resolve()) | companions
    linked = _link(binary.resolve(), cache / "prebuilt" / name, minor, links=links)
    if (version := _version_of(linked)) not in ("", minor.version):
        raise LocalClusterError(
            f"{PREBUILT} names {binary}, which is Kubernetes {version}; asked for is {minor.version}: set"
            f" {CHOICE} to the minor that it is, name another one, or unset it."
        )
    return linked


def _version_of(binary: Binary) -> str:
    """Returns what the program says of itself, such as ``v1.34.4``; empty where it does not."""
    command = [str(binary.kubectl), "version", "--client", "--output=json"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
        return str(json.loads(done.stdout)["clientVersion"]["gitVersion"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _link(binary: Path, folder: Path, minor: Minor, *, links: Mapping[str, Path]) -> Binary:
    folder.mkdir(parents=True, exist_ok=True)
    for name, target in links.items():
        link = folder / name
        if not link.exists():
            link.unlink(missing_ok=True)
            link.symlink_to(target)
    return Binary(path=binary, programs=folder, minor=minor)
