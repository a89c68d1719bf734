"""The scheduler's engine has Go tests of its own, and says the same as core.

The packages above the engine need all of kube-scheduler, minutes to compile: scheduler/README.md says how
they are tested.
"""

import os
import subprocess
from pathlib import Path

import pytest
from tests.engine import go_engine
from tests.engine.__main__ import differences
from tests.engine.draw import draw

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.cluster import to_stderr
from gpushare_localcluster.directories import cache_folder

ENGINE = (
    "allocation", "binding", "cards", "cases", "dialects", "jsontext", "ledger", "printable", "quantity",
    "sharenode", "unit",
)  # fmt: skip
PACKAGES = [f"./internal/{package}/..." for package in ENGINE]
SEEDS = range(2_000_000, 2_000_400)


@pytest.fixture(scope="module")
def go() -> Path:
    return toolchain.find_go(cache_folder(), report=to_stderr)


def run(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        cwd=go_engine.SOURCES,
        env={**os.environ, **go_engine.FLAGS},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_code_is_formatted(go: Path) -> None:
    root = run(go, "env", "GOROOT").strip()
    assert run(Path(root, "bin", "gofmt"), "-l", ".") == ""


def test_vet_finds_nothing(go: Path) -> None:
    run(go, "vet", *PACKAGES)


def test_the_go_tests_pass(go: Path) -> None:
    told = run(go, "test", "-count=1", *PACKAGES)
    assert "ok  \tgpushare.io/scheduler/internal/cases" in told


def test_both_engines_say_the_same(go: Path, tmp_path: Path) -> None:
    program = go_engine.build(go, tmp_path / "answer")
    found = [*map(str, differences(program, [draw(seed) for seed in SEEDS]))]
    assert not found, f"{len(found)} differences, the first: {found[0]}"
