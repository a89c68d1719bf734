"""One minor: its programs are built, then its tests are run."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.e2e.kubernetes_upgrade import PATH

from gpushare_localcluster.build.binary import PREBUILT
from gpushare_localcluster.build.minors import CHOICE, MINORS
from matrix.checkout import Checkout
from matrix.recording import OPTION
from matrix.report import ROOT, MatrixRow
from matrix.results import NOTHING, TestRun, read_phases, results

PLUGIN = "matrix.recording"
SELECTION = "not same_everywhere"
ALL_TESTS = ("tests/e2e", "tests/component/scheduler/test_go.py")
"""The second runs the Go tests of our scheduler, which is another program for each minor."""
RAN = (0, 1)
"""Exit statuses of pytest when it ran all tests: all passed, or some failed.
Source: https://docs.pytest.org/en/stable/reference/exit-codes.html"""
CLOSING_SECONDS = 180.0
"""For pytest to stop its clusters once it is interrupted."""
INTERRUPTED = "interrupted: the other tests were not run"
NOT_BUILT = "Kubernetes or containerd was not built: the output says why"


@dataclass(frozen=True)
class MinorRun:
    """The run of one minor. ``tests``: files or names; ``processes``: as pytest-xdist takes it."""

    minor: str
    tests: Sequence[str]
    processes: str
    max_seconds: float

    def row(self) -> MatrixRow:
        """Builds and runs; an interruption ends the tests, and the row says so."""
        before, date = Checkout.now(), datetime.now(UTC).date().isoformat()
        problem, seen, begun = NOT_BUILT, NOTHING, time.monotonic()
        try:
            if self._build():
                begun = time.monotonic()
                problem, seen = self._test()
        except KeyboardInterrupt:
            problem = INTERRUPTED
        return MatrixRow(
            minor=self.minor,
            versions=seen.versions,
            commit=before.commit,
            is_modified=not before.is_unchanged(Checkout.now()),
            date=date,
            minutes=round((time.monotonic() - begun) / 60, 1),
            passed=seen.passed,
            failed=seen.failed,
            skipped=seen.skipped,
            problem=problem,
        )

    def _build(self) -> bool:
        """Builds what the tests would otherwise wait for: also the minor from which they upgrade. Returns
        whether that went well."""
        localcluster = str(Path(sys.executable).with_name("localcluster"))
        minors = step_to(self.minor) or [self.minor]
        builds = (["--containerd"], *(["--kubernetes", minor] for minor in minors))
        return all(
            subprocess.run(
                [localcluster, "build", *what], env=self._environment, stdout=sys.stderr, check=False
            ).returncode
            == 0
            for what in builds
        )

    def _test(self) -> tuple[str, TestRun]:
        """Returns why not all tests were run, empty where they were, and what came of those that were."""
        with tempfile.TemporaryDirectory() as scratch:
            file = Path(scratch, "phases")
            return self._run_pytest(file), results(read_phases(file))

    def _run_pytest(self, file: Path) -> str:
        """Returns why not all tests were run; what came of the others is in ``file``."""
        options = [f"--numprocesses={self.processes}", "-m", SELECTION, "-p", PLUGIN, f"{OPTION}={file}"]
        command = [sys.executable, "-m", "pytest", *self.tests, *options]
        # In a session of its own: a second Ctrl-C would end it before its clusters are stopped.
        with subprocess.Popen(command, cwd=ROOT, env=self._environment, start_new_session=True) as tests:
            try:
                return problem_of(tests.wait(self.max_seconds))
            except KeyboardInterrupt:
                end(tests)
                return INTERRUPTED
            except subprocess.TimeoutExpired:
                end(tests)
                return f"ended after {self.max_seconds / 60:.0f} minutes: the other tests were not run"

    @property
    def _environment(self) -> Mapping[str, str]:
        """A program that was built elsewhere is of one minor only."""
        inherited = {name: value for name, value in os.environ.items() if name != PREBUILT}
        return {**inherited, CHOICE: self.minor, PATH: " ".join(step_to(self.minor))}


def step_to(minor: str) -> Sequence[str]:
    """Returns the minor before ``minor``, and ``minor``; nothing where it is the oldest."""
    names = [known.name for known in MINORS]
    at = names.index(minor)
    return names[at - 1 : at + 1] if at else ()


def end(tests: subprocess.Popen[bytes]) -> None:
    """Interrupts pytest, and kills it where that does not end it."""
    tests.send_signal(signal.SIGINT)
    try:
        tests.wait(CLOSING_SECONDS)
    except subprocess.TimeoutExpired:
        tests.kill()


def problem_of(status: int) -> str:
    """Returns what an exit status of pytest says of tests that were not run."""
    return "" if status in RAN else f"pytest ended with status {status}: not all tests were run"
