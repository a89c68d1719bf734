"""Of which Kubernetes our kube-scheduler's image can be, before anything is compiled."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpushare_localcluster.build.binary import SCHEDULER

ROOT = Path(__file__).resolve().parents[3]
GO = """#!/bin/sh
[ "$1" = version ] && { echo go version go1.26.8 linux/amd64; exit; }
[ "$1" = env ] && { echo "$ROOT"; exit; }
[ "$1" = list ] && exit
echo "$@" >> "$CALLS"
exit 1
"""


def lay_out(tmp_path: Path, *kubernetes: str) -> "subprocess.CompletedProcess[str]":
    """With a compiler that compiles nothing, and writes down what it was to compile."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{go.parent}:{os.environ['PATH']}",
        "ROOT": str(tmp_path),
        "CALLS": str(tmp_path / "calls"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    command = [sys.executable, str(ROOT / "image/scheduler_root.py"), str(tmp_path / "root"), *kubernetes]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("asked", ["1.33", "1.36.2", "1.36.3.1", "new", "1.3"])
def test_another_version_than_those_in_the_module_files_is_refused_with_their_list(
    tmp_path: Path, asked: str
) -> None:
    done = lay_out(tmp_path, asked)
    assert done.returncode == 1
    versions = ", ".join(minor.version.removeprefix("v") for minor in SCHEDULER.minors)
    assert done.stderr.startswith(
        f"There is no scheduler of Kubernetes '{asked}'; there is one of {versions}."
    )
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    ("asked", "built"),
    [
        (["1.36"], "v1.36.3"),
        (["1.36.3"], "v1.36.3"),
        (["v1.36.3"], "v1.36.3"),
        ([], SCHEDULER.minors[-1].version),
    ],
)
def test_a_version_a_minor_or_nothing_says_of_which_it_is(
    tmp_path: Path, asked: list[str], built: str
) -> None:
    done = lay_out(tmp_path, *asked)
    assert f"gitVersion={built}+gpushare" in (tmp_path / "calls").read_text()
    assert done.returncode == 1, "the compiler has failed"
    assert "does not build" in done.stderr
