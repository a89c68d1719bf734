"""The local cluster's program: named by its sources, built once, found again."""

import fcntl
import os
import pty
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import TextIO

import pytest

from gpushare_core.process.version import VERSION
from gpushare_localcluster.build import binary, progress, toolchain
from gpushare_localcluster.build.lock import locked
from gpushare_localcluster.build.minors import CHOICE, DEFAULT, MINORS, Minor, minor_named
from gpushare_localcluster.directories import cache_folder
from gpushare_localcluster.errors import LocalClusterError


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    (folder / "internal").mkdir(parents=True)
    for name in ("go.mod", "go.sum", "main.go", "internal/kubelet.yaml"):
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize(
    ("change", "is_new"),
    [
        pytest.param(lambda folder: (folder / "main.go").write_text("edited"), True, id="an edited Go file"),
        pytest.param(lambda folder: (folder / "go.mod").write_text("edited"), True, id="another dependency"),
        pytest.param(
            lambda folder: (folder / "internal/kubelet.yaml").write_text("edited"),
            True,
            id="an embedded file",
        ),
        pytest.param(lambda folder: (folder / "new.go").write_text("main.go"), True, id="another Go file"),
        pytest.param(lambda folder: (folder / "main_test.go").write_text("test"), False, id="a test"),
        pytest.param(lambda folder: (folder / "cli.py").write_text("python"), False, id="Python code"),
    ],
)
def test_a_build_is_named_by_what_the_compiler_reads(
    sources: Path, change: Callable[[Path], object], *, is_new: bool
) -> None:
    before = binary.fingerprint(sources, "go1.26")
    change(sources)
    assert (binary.fingerprint(sources, "go1.26") != before) == is_new


def test_another_compiler_makes_another_build(sources: Path) -> None:
    assert binary.fingerprint(sources, "go1.26") != binary.fingerprint(sources, "go1.27")


def test_the_build_sets_the_version_that_clients_parse(tmp_path: Path) -> None:
    flags = binary.build_command(binary.LOCALCLUSTER, tmp_path / "out", Minor(1, 34, 4))
    (linking,) = [flag.split() for flag in flags if "-X" in flag]
    for setting in ("gitVersion=v1.34.4", "gitMajor=1", "gitMinor=34"):
        assert f"k8s.io/component-base/version.{setting}" in linking


def test_the_scheduler_says_that_it_is_ours_behind_the_version_of_kubernetes() -> None:
    assert binary.SCHEDULER.version(Minor(1, 36, 3)) == "v1.36.3+gpushare"


def test_the_scheduler_is_linked_with_gpushares_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    minor = binary.SCHEDULER.minors[0]
    package, _, variable = binary.SCHEDULER.version_variable.rpartition(".")
    folder = binary.SCHEDULER.sources / package.removeprefix(f"{binary.SCHEDULER.module}/")
    assert any(f"\nvar {variable} = " in path.read_text() for path in folder.glob("*.go"))
    command = binary.build_command(binary.SCHEDULER, tmp_path / "out", minor)
    assert any(f"-X {binary.SCHEDULER.version_variable}={VERSION}" in argument for argument in command)

    before = binary.build_name(binary.SCHEDULER, minor, "go1.26")
    monkeypatch.setattr(binary, "gpushare_version", lambda: "another")
    assert binary.build_name(binary.SCHEDULER, minor, "go1.26") != before


def prebuilt_in(folder: Path, *, script: str = "") -> Path:
    """Makes the two programs that a build consists of."""
    for name in ("localcluster", "kubectl"):
        (folder / name).write_text(f"#!/bin/sh\n{script}")
        (folder / name).chmod(0o755)
    return folder / "localcluster"


def test_a_prebuilt_binary_is_used_under_the_components_names(tmp_path: Path) -> None:
    prebuilt = prebuilt_in(tmp_path)
    environment = {binary.PREBUILT: str(prebuilt), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    found = binary.ensure_binary(report=pytest.fail, environment=environment)

    assert found.path == prebuilt
    assert {link.name: link.resolve() for link in found.programs.iterdir()} == {
        "kube-scheduler": prebuilt,
        "pause": prebuilt,
        "kubectl": tmp_path / "kubectl",
    }


def test_each_minor_is_a_build_of_its_own() -> None:
    names = [binary.build_name(binary.LOCALCLUSTER, minor, "go1.26") for minor in MINORS]
    assert [name.rpartition("-")[0] for name in names] == [minor.name for minor in MINORS]
    assert len({name.rpartition("-")[2] for name in names}) == len(MINORS)


def test_a_prebuilt_binary_is_of_the_minor_that_the_environment_chooses(tmp_path: Path) -> None:
    environment = {
        binary.PREBUILT: str(prebuilt_in(tmp_path)),
        CHOICE: "1.34",
        "XDG_CACHE_HOME": str(tmp_path),
    }
    found = binary.ensure_binary(report=pytest.fail, environment=environment)
    assert found.minor == minor_named("1.34")


def test_a_prebuilt_binary_of_another_minor_is_refused(tmp_path: Path) -> None:
    prebuilt = prebuilt_in(tmp_path, script="""echo '{"clientVersion": {"gitVersion": "v1.36.3"}}'""")
    environment = {binary.PREBUILT: str(prebuilt), "XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(LocalClusterError, match=r"is Kubernetes v1\.36\.3; asked for is v1\.37"):
        binary.ensure_binary(report=pytest.fail, environment=environment)
    chosen = {**environment, CHOICE: "1.36"}
    assert binary.ensure_binary(report=pytest.fail, environment=chosen).path == prebuilt


def test_a_link_to_a_binary_that_is_gone_is_replaced(tmp_path: Path) -> None:
    environment = {
        binary.PREBUILT: str(prebuilt_in(tmp_path)),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    kubectl = binary.ensure_binary(report=pytest.fail, environment=environment).kubectl
    kubectl.unlink()
    kubectl.symlink_to(tmp_path / "gone")

    again = binary.ensure_binary(report=pytest.fail, environment=environment)
    assert again.kubectl.resolve() == tmp_path / "kubectl"


def test_a_prebuilt_binary_without_kubectl_beside_it_is_refused(tmp_path: Path) -> None:
    prebuilt = prebuilt_in(tmp_path)
    (tmp_path / "kubectl").unlink()
    environment = {binary.PREBUILT: str(prebuilt), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(LocalClusterError, match="kubectl is not an executable file"):
        binary.ensure_binary(report=pytest.fail, environment=environment)


@pytest.mark.parametrize("name", ["missing", "folder"])
def test_a_prebuilt_binary_that_cannot_run_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    environment = {binary.PREBUILT: str(tmp_path / name), "XDG_CACHE_HOME": str(tmp_path)}
    with pytest.raises(LocalClusterError, match="not an executable file"):
        binary.ensure_binary(report=pytest.fail, environment=environment)


def test_without_sources_the_way_out_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "LOCALCLUSTER", replace(binary.LOCALCLUSTER, sources=tmp_path))
    with pytest.raises(LocalClusterError, match=binary.PREBUILT):
        binary.ensure_binary(report=pytest.fail, environment={"XDG_CACHE_HOME": str(tmp_path)})


PROGRAM = binary.LOCALCLUSTER
FAKE_GO = """#!/bin/sh
[ "$1" = list ] && {packages}
for argument; do last_but_one=$output; output=$argument; done
{body}
"""


def fake_go(folder: Path, body: str, packages: str = "exit 0") -> Path:
    go = folder / "go"
    go.write_text(FAKE_GO.format(body=body, packages=packages))
    go.chmod(0o755)
    return go


def test_a_build_that_fails_says_why_and_leaves_no_program(tmp_path: Path) -> None:
    go = fake_go(tmp_path, 'echo half > "$last_but_one"; echo "main.go:1: syntax error" >&2; exit 1')
    with pytest.raises(LocalClusterError, match="syntax error"):
        binary.build(go, PROGRAM, tmp_path / "build", DEFAULT, report=lambda _: None)
    assert not (tmp_path / "build" / "localcluster").exists()


def test_a_build_puts_the_program_in_its_folder_and_reports_its_start_and_end(tmp_path: Path) -> None:
    said: list[str] = []
    go = fake_go(tmp_path, 'echo program > "$last_but_one"')

    binary.build(go, PROGRAM, tmp_path / "build", DEFAULT, report=said.append)

    assert (tmp_path / "build" / "localcluster").read_text() == "program\n"
    assert "5 minutes" in said[0]
    assert said[-1].startswith("built in")


def test_a_build_counts_the_packages_that_are_to_be_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.0)
    said: list[str] = []
    body = 'echo k8s.io/a >&2; echo unknown >&2; echo program > "$last_but_one"; sleep 0.2'
    go = fake_go(tmp_path, body, packages="printf 'go: downloading x\\nk8s.io/a\\nk8s.io/b\\n' && exit 0")
    binary.build(go, PROGRAM, tmp_path / "build", DEFAULT, report=said.append)
    assert any(line.startswith("still building: 1 of 2 packages") for line in said), said


@contextmanager
def terminal(drawn: list[bytes], *, columns: int) -> Iterator[TextIO]:
    """Yields a terminal; at its end ``drawn`` has all that was drawn on it."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))

    def read() -> None:
        with suppress(OSError):  # nobody has it open any more
            while piece := os.read(master, 1 << 12):
                drawn.append(piece)

    reader = Thread(target=read)
    reader.start()
    with os.fdopen(slave, "w") as file:
        yield file
    reader.join()
    os.close(master)


def test_a_build_on_a_terminal_draws_one_line_as_wide_as_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever stdout is: who asks for the program's path has it in a pipe."""
    monkeypatch.setattr(progress, "TICK_SECONDS", 0.02)
    monkeypatch.setattr(progress, "REPORT_SECONDS", 0.0)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    said: list[str] = []
    body = 'echo k8s.io/a >&2; sleep 0.1; echo k8s.io/b >&2; sleep 0.1; echo program > "$last_but_one"'
    go = fake_go(tmp_path, body, packages="printf 'k8s.io/a\\nk8s.io/b\\n' && exit 0")
    pieces: list[bytes] = []
    with terminal(pieces, columns=40) as file, monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", file)
        binary.build(go, PROGRAM, tmp_path / "build", DEFAULT, report=said.append)
    drawn = b"".join(pieces).decode().split(progress.ERASE_LINE)
    half, whole = ("#" * filled + "." * (progress.BAR_WIDTH - filled) for filled in (12, 24))
    assert f"[{half}] 1 of 2 packa" in drawn
    assert f"[{whole}] 2 of 2 packa" in drawn
    assert drawn[-1] == "", "taken away"
    assert not any(line.startswith("still building") for line in said)


def test_a_build_under_way_is_waited_for(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    said: list[str] = []
    with lock.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)

        def report(message: str) -> None:
            said.append(message)
            fcntl.flock(other, fcntl.LOCK_UN)

        with locked(lock, report=report):
            assert said == ["waiting for another process that builds a part of the local cluster"]


def test_what_is_built_is_used_while_another_program_is_being_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = fake_go(tmp_path, "echo go version go1.26.6 linux/amd64")
    monkeypatch.setattr(toolchain, "find_go", lambda *_, **__: go)
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    cache = cache_folder(environment)
    program = cache / binary.build_name(PROGRAM, DEFAULT, toolchain.version(go)) / "localcluster"
    program.parent.mkdir(parents=True)
    program.touch()
    with (cache / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert binary.ensure_binary(report=pytest.fail, environment=environment).path == program


def test_a_build_for_another_architecture_is_a_build_of_its_own(tmp_path: Path) -> None:
    go = fake_go(tmp_path, '[ "$1" = build ] && echo program > "$last_but_one"; echo go1.26.8')
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    folders = {
        binary.ensure_program(
            binary.SCHEDULER, DEFAULT, report=lambda _: None, environment={**cache, **other}, go=go
        ).programs
        for other in ({}, {"GOARCH": "arm64"}, {"GOARCH": "arm64"})
    }
    assert len(folders) == 2
    assert {folder.parent for folder in folders} == {cache_folder(cache) / "scheduler"}
    for folder in folders:
        assert (folder / "kube-scheduler").readlink() == folder / "gpushare-scheduler"
