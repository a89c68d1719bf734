"""Programs from their Go modules: each built once; runc with C, and libseccomp as a part of it."""

import os
import sys
from pathlib import Path

import pytest

from gpushare_localcluster.build import container_runtime, modules
from gpushare_localcluster.build.container_runtime import ensure_runtime
from gpushare_localcluster.errors import LocalClusterError

GO = """#!/bin/sh
case $1 in
  version) echo go version go1.26.9 linux/amd64 ;;
  build)
    while [ "$1" != -o ]; do shift; done
    echo "$3" >> "$CALLS"
    printf '%s\\n' "CGO_ENABLED=$CGO_ENABLED" "CC=$CC" "CGO_LDFLAGS=$CGO_LDFLAGS" > "$2"
    [ "$3" != "$BROKEN" ] || { echo it is broken >&2; exit 1; } ;;
esac
"""
"""Writes down what it builds, and as the program what it was told of C."""


@pytest.fixture(autouse=True)
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A compiler that only says what it does, a cache of the test's own, and Debian's package in it."""
    programs, packages, calls = tmp_path / "bin", tmp_path / "packages", tmp_path / "calls"
    programs.mkdir()
    (programs / "go").write_text(GO)
    (programs / "go").chmod(0o755)
    libraries = packages / "usr/lib/x86_64-linux-gnu"
    libraries.mkdir(parents=True)
    (libraries / "libseccomp.a").touch()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(calls))
    monkeypatch.setenv("BROKEN", "")
    monkeypatch.setattr(container_runtime, "ensure_packages", lambda *_names, **_report: packages)
    calls.touch()
    return calls


def silent(message: str) -> None:
    del message


def test_a_program_is_built_once_and_found_from_then_on(calls: Path) -> None:
    helm = modules.ensure_helm(report=silent)
    assert modules.ensure_helm(report=pytest.fail) == helm
    assert calls.read_text().split() == ["helm.sh/helm/v3/cmd/helm"]


def test_an_older_build_that_nobody_uses_is_deleted() -> None:
    helm = modules.ensure_helm(report=silent)
    old = helm.parents[1] / "0123456789abcdef"
    old.mkdir()
    os.utime(old, (0, 0))
    helm.unlink()
    assert modules.ensure_helm(report=silent) == helm
    assert not old.exists()


def test_real_containers_have_all_their_programs() -> None:
    runtime = ensure_runtime(report=silent)
    found = {
        path.name
        for folder in (runtime.containerd, runtime.runc, runtime.plugins)
        for path in folder.iterdir()
    }
    assert found == {"containerd", "containerd-shim-runc-v2", "ctr", "runc", "bridge", "host-local"}


def test_only_runc_is_built_with_c_and_libseccomp_becomes_a_part_of_it(tmp_path: Path) -> None:
    runtime = ensure_runtime(report=silent)
    library = tmp_path / "packages/usr/lib/x86_64-linux-gnu/libseccomp.a"
    assert (runtime.runc / "runc").read_text().splitlines() == [
        "CGO_ENABLED=1",
        f"CC='{sys.executable}' -m ziglang cc",
        f"CGO_LDFLAGS='{library}'",
    ]
    assert (runtime.containerd / "ctr").read_text().startswith("CGO_ENABLED=0\n")


def test_what_does_not_build_is_tried_again_and_what_did_is_not(
    calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = container_runtime.CONTAINERD.programs["containerd-shim-runc-v2"]
    monkeypatch.setenv("BROKEN", shim)
    with pytest.raises(LocalClusterError, match="it is broken"):
        ensure_runtime(report=silent)
    monkeypatch.setenv("BROKEN", "")
    calls.write_text("")
    ensure_runtime(report=silent)
    built = calls.read_text().split()
    assert built[0] == shim
    assert container_runtime.CONTAINERD.programs["containerd"] not in built


def test_a_package_without_the_library_is_named(tmp_path: Path) -> None:
    next(tmp_path.glob("packages/usr/lib/*/libseccomp.a")).unlink()
    with pytest.raises(LocalClusterError, match=r"libseccomp-dev has no libseccomp\.a: delete "):
        ensure_runtime(report=silent)
