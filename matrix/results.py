"""What came of a run, from the phases of its tests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from matrix.recording import Phase


@dataclass(frozen=True)
class TestRun:
    """Tests by their names as pytest takes them."""

    __test__ = False

    passed: int
    failed: tuple[str, ...]
    """Those that failed themselves, or before or after which something failed."""
    skipped: Mapping[str, str]
    """Test -> reason."""
    versions: Mapping[str, str]
    """What the tests recorded: a program -> its version."""


NOTHING = TestRun(passed=0, failed=(), skipped={}, versions={})


def read_phases(file: Path) -> list[Phase]:
    """Returns the phases that are whole; none where pytest has not begun."""
    lines = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [msgspec.json.decode(line, type=Phase) for line in lines if line.endswith(b"\n")]


def results(phases: Iterable[Phase]) -> TestRun:
    """A test that has not ended counts nowhere."""
    phases = list(phases)
    ended = {phase.test for phase in phases if phase.when == "teardown"}
    failed = dict.fromkeys(phase.test for phase in phases if phase.outcome == "failed")
    skipped = {phase.test: phase.reason for phase in phases if phase.outcome == "skipped"}
    versions = {name: str(value) for phase in phases for name, value in phase.properties}
    return TestRun(len(ended - failed.keys() - skipped.keys()), tuple(failed), skipped, versions)
