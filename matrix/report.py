"""What is kept of the runs, in docs/versions.json: one row for each minor, that of its last run."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "versions.json"


class MatrixRow(msgspec.Struct, frozen=True, kw_only=True):
    """The last run of one minor."""

    minor: str
    """Such as ``1.34``."""
    versions: Mapping[str, str]
    """A program -> its version, as the programs themselves said it."""
    commit: str
    """Empty outside of a checkout."""
    is_modified: bool
    """The checkout had changes that no commit has, or was changed during the run."""
    date: str
    """On which the run began, in UTC: ``2026-11-26``."""
    minutes: float
    """That the tests took, without a build of Kubernetes."""
    passed: int = 0
    failed: tuple[str, ...] = ()
    skipped: Mapping[str, str] = {}
    """Test -> reason."""
    problem: str = ""
    """Why not all tests were run; empty where they were."""

    @property
    def is_clean(self) -> bool:
        """Whether every test was run, and none failed."""
        return not self.problem and not self.failed and self.passed > 0


class MatrixReport(msgspec.Struct, frozen=True):
    """All rows, the oldest minor first."""

    rows: tuple[MatrixRow, ...] = ()

    def with_row(self, row: MatrixRow) -> "MatrixReport":
        """Returns the report with ``row`` instead of its minor's former one."""
        others = [other for other in self.rows if other.minor != row.minor]
        return MatrixReport(tuple(sorted([*others, row], key=lambda each: _order(each.minor))))

    @property
    def clean(self) -> Sequence[MatrixRow]:
        return [row for row in self.rows if row.is_clean]


def load(path: Path = REPORT) -> MatrixReport:
    return msgspec.json.decode(path.read_bytes(), type=MatrixReport)


def save(report: MatrixReport, path: Path = REPORT) -> None:
    text = msgspec.json.format(msgspec.json.encode(report), indent=1)
    path.write_bytes(text + b"\n")


def _order(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))
