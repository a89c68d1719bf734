"""The report keeps one row for each minor, and says what was not so."""

from pathlib import Path
from typing import Any

import pytest
from matrix.documents import claims, page, with_claims
from matrix.report import MatrixReport, MatrixRow, load, save

from gpushare_localcluster.build.minors import MINORS

OLDEST, SECOND, *_, NEWEST = MINORS


def row(minor: str, **fields: Any) -> MatrixRow:
    versions = {"Kubernetes": f"{minor}.9", "containerd": "2.4.2", "runc": "1.5.2", "cgroups": "1"}
    default = {"commit": "0123456789abcdef", "is_modified": False, "date": "2026-11-26", "minutes": 14.5}
    return MatrixRow(**{"minor": minor, "versions": versions, "passed": 300, **default, **fields})


def test_a_minor_that_is_run_again_replaces_its_own_row_only() -> None:
    report = (
        MatrixReport().with_row(row("1.36", passed=1)).with_row(row("1.9")).with_row(row("1.36", passed=2))
    )
    assert [(each.minor, each.passed) for each in report.rows] == [("1.9", 300), ("1.36", 2)]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    report = MatrixReport((row("1.36", failed=("tests/e2e/test_a.py::test_b",), skipped={"test_c": "why"}),))
    save(report, tmp_path / "versions.json")
    assert load(tmp_path / "versions.json") == report


@pytest.mark.parametrize(
    "fields", [{"failed": ("a test",)}, {"problem": "interrupted"}, {"passed": 0, "skipped": {"all": "why"}}]
)
def test_only_a_run_of_all_tests_without_a_failure_is_clean(fields: dict[str, Any]) -> None:
    assert row("1.36").is_clean
    assert not row("1.36", **fields).is_clean


def test_only_clean_runs_are_claimed_and_the_other_minors_are_built() -> None:
    report = MatrixReport((row(OLDEST.name), row(SECOND.name, failed=("a test",)), row(NEWEST.name)))
    said = claims(report)
    assert said["run"] == f"{OLDEST.name}.9 and {NEWEST.name}.9"
    assert said["built"].startswith(SECOND.version.removeprefix("v"))
    assert OLDEST.version.removeprefix("v") not in said["built"]
    assert (said["runtimes"], said["cgroups"]) == ("containerd 2.4.2 with runc 1.5.2", "version 1")


def test_without_a_run_nothing_is_claimed() -> None:
    said = claims(MatrixReport())
    assert (said["run"], said["runtimes"], said["cgroups"]) == ("none", "none", "none")


def test_claims_go_between_their_comments() -> None:
    text = "on <!-- versions: run -->1.2 and 1.3<!-- end --> and <!-- versions: built --><!-- end -->."
    expected = "on <!-- versions: run -->1.36.9<!-- end --> and <!-- versions: built -->none<!-- end -->."
    assert with_claims(text, {"run": "1.36.9", "built": "none"}) == expected


def test_the_page_has_a_line_for_each_run() -> None:
    assert (
        "| 1.36.9 | 2.4.2 | 1.5.2 | 1 | 0123456789 | 2026-11-26 | 14.5 | 300 | 0 | 0 |"
        in page(MatrixReport((row("1.36"),))).splitlines()
    )


def test_the_page_says_what_went_wrong() -> None:
    lines = page(
        MatrixReport(
            (
                row("1.35", is_modified=True, problem="interrupted: the other tests were not run"),
                row("1.36", failed=("tests/e2e/test_a.py::test_b",)),
            )
        )
    )
    assert "| 0123456789 and changes that no commit has |" in lines
    assert "- 1.35: interrupted: the other tests were not run" in lines
    assert "- 1.36: `tests/e2e/test_a.py::test_b` failed" in lines


def test_the_page_has_each_reason_of_skipped_tests_once() -> None:
    skipped = {"test_a": "the kernel lacks it", "test_b": "the kernel lacks it"}
    lines = page(MatrixReport((row("1.35", skipped=skipped), row("1.36", skipped=skipped)))).splitlines()
    assert "- the kernel lacks it (2 on 1.35, 2 on 1.36)" in lines
