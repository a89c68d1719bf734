"""The scheduler has Go tests of its own, and its engine says the same as core.

The packages above the engine need all of kube-scheduler, minutes to compile: they wait until the program is
built, and are tested with the Kubernetes that is chosen.
"""

import os
import subprocess
from pathlib import Path

import pytest
from tests.engine import go_engine
from tests.engine.__main__ import differences
from tests.engine.draw import draw

from gpushare_localcluster.build import toolchain
from gpushare_localcluster.build.binary import SCHEDULER, ensure_program
from gpushare_localcluster.build.minors import Minor, chosen_minor
from gpushare_localcluster.cluster import to_stderr
from gpushare_localcluster.directories import cache_folder

ENGINE = (
    "allocation", "binding", "cards", "cases", "dialects", "jsontext", "ledger", "printable",
    "proportion", "quantity", "sharenode", "unit",
)  # fmt: skip
PACKAGES = [f"./internal/{package}/..." for package in ENGINE]
ABOVE = [".", *(
    f"./internal/{folder.name}/..."
    for folder in sorted(SCHEDULER.sources.glob("internal/*")) if folder.name not in ENGINE
)]  # fmt: skip
SEEDS = range(2_000_000, 2_000_400)


@pytest.fixture(scope="module")
def go() -> Path:
    return toolchain.find_go(cache_folder(), report=to_stderr)


@pytest.fixture(scope="module")
def built() -> Minor:
    """The Kubernetes that is compiled now: Go's tools would compile it, too, beside whoever does."""
    minor = chosen_minor()
    if minor not in SCHEDULER.minors:
        pytest.skip(f"the scheduler is not built of Kubernetes {minor.name}")
    ensure_program(SCHEDULER, minor, report=to_stderr)
    return minor


def run(*command: str | Path) -> str:
    done = subprocess.run(
        command,
        cwd=go_engine.SOURCES,
        env={**os.environ, **go_engine.FLAGS},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, "\n".join([done.stdout, done.stderr, *failures(done.stdout)])
    return done.stdout


def failures(printed: str) -> list[str]:
    """Which tests failed and why, at the end of what may be thousands of lines of kube-scheduler's log."""
    return [line for line in printed.splitlines() if "--- FAIL" in line or "_test.go:" in line]


def test_vet_finds_nothing_in_the_engine(go: Path) -> None:
    run(go, "vet", *PACKAGES)


def test_the_engines_go_tests_pass(go: Path) -> None:
    told = run(go, "test", "-count=1", *PACKAGES)
    assert "ok  \tgpushare.io/scheduler/internal/cases" in told


def test_vet_finds_nothing_above_the_engine(go: Path, built: Minor) -> None:
    run(go, "vet", *built.go_flags, *ABOVE)


def test_the_go_tests_above_the_engine_pass(go: Path, built: Minor) -> None:
    told = run(go, "test", *built.go_flags, "-count=1", *ABOVE)
    assert "ok  \tgpushare.io/scheduler/internal/plugin" in told


def test_both_engines_say_the_same(go: Path, tmp_path: Path) -> None:
    program = go_engine.build(go, tmp_path / "answer")
    found = [*map(str, differences(program, [draw(seed) for seed in SEEDS]))]
    assert not found, f"{len(found)} differences, the first: {found[0]}"
