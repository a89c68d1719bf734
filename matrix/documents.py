"""What people read of the report: ``python -m matrix.documents [--check]``.

Writes docs/versions.md, and what README.md and docs/install.md say between two comments of the same name.
"""

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.e2e.same_everywhere import SAME_EVERYWHERE

from gpushare_localcluster.build.minors import MINORS
from matrix.report import ROOT, MatrixReport, MatrixRow, load

PAGE = Path("docs/versions.md")
CLAIMING = (Path("README.md"), Path("docs/install.md"))
"""Documents with claims between comments."""
COMMENT = re.compile(r"(<!-- versions: (\w+) -->).*?(<!-- end -->)")
NONE = "none"
REMEDY = ".venv/bin/python -m matrix.documents"
SHORT_COMMIT = 10

INTRODUCTION = """\
# Which versions were run

`make matrix` builds each of these versions of Kubernetes from its Go modules, and runs the end-to-end tests
on it: a real API server, kube-scheduler and kubelets on one machine, with simulated cards. It also runs the
Go tests of gpushare's scheduler with the modules of that version. It writes this page from
[versions.json](versions.json). A row is the last run of its version, whatever came of it.
"""
PROGRAMS = ("Kubernetes", "containerd", "runc", "cgroups")
COLUMNS = (*PROGRAMS, "commit", "date", "minutes", "passed", "failed", "skipped")
LEFT_OUT = """
## What is left out

These tests show the same on every version. `make test` runs them, on the newest one.

| test | why it is the same |
|---|---|
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only tell whether the documents are up to date")
    options = parser.parse_args()
    stale = stale_documents(load())
    for path, text in stale.items():
        if options.check:
            print(f"{path} is not what docs/versions.json says: run `{REMEDY}`", file=sys.stderr)
        else:
            (ROOT / path).write_text(text)
    return int(options.check and bool(stale))


def write_documents(report: MatrixReport) -> None:
    for path, text in stale_documents(report).items():
        (ROOT / path).write_text(text)


def stale_documents(report: MatrixReport) -> Mapping[Path, str]:
    """Returns the documents that say something else than ``report``, with their right text."""
    wanted = {PAGE: page(report)}
    for path in CLAIMING:
        wanted[path] = with_claims((ROOT / path).read_text(), claims(report))
    return {path: text for path, text in wanted.items() if _text(ROOT / path) != text}


def claims(report: MatrixReport) -> Mapping[str, str]:
    """Returns what may be said, by the name of its comment: of runs in which every test passed."""
    clean = [row.minor for row in report.clean]
    return {
        "run": _listed(_values(report.clean, "Kubernetes")),
        "built": _listed(minor.version.removeprefix("v") for minor in MINORS if minor.name not in clean),
        "runtimes": _listed(_runtimes(report.clean)),
        "cgroups": _listed(f"version {version}" for version in _values(report.clean, "cgroups")),
    }


def with_claims(text: str, said: Mapping[str, str]) -> str:
    """Returns the document with what is ``said`` between its comments."""
    return COMMENT.sub(lambda comment: f"{comment[1]}{said[comment[2]]}{comment[3]}", text)


def page(report: MatrixReport) -> str:
    """Returns docs/versions.md."""
    parts = [INTRODUCTION, *_table(report), *_failures(report), *_skips(report), LEFT_OUT.rstrip("\n")]
    parts += [f"| `{name}` | {reason} |" for name, reason in SAME_EVERYWHERE.items()]
    return "\n".join(parts) + "\n"


def _table(report: MatrixReport) -> Iterator[str]:
    if not report.rows:
        yield "No version was run yet."
        return
    yield f"| {' | '.join(COLUMNS)} |"
    yield f"|{'---|' * len(COLUMNS)}"
    for row in report.rows:
        yield f"| {' | '.join(_cells(row))} |"


def _cells(row: MatrixRow) -> Sequence[str]:
    versions = {"Kubernetes": row.minor, **row.versions}
    programs = [versions.get(program, "") for program in PROGRAMS]
    commit = row.commit[:SHORT_COMMIT] + (" and changes that no commit has" if row.is_modified else "")
    counts = [str(row.passed), str(len(row.failed)), str(len(row.skipped))]
    return [*programs, commit, row.date, f"{row.minutes:g}", *counts]


def _failures(report: MatrixReport) -> Iterator[str]:
    unclean = [row for row in report.rows if row.problem or row.failed]
    if unclean:
        yield "\n## What went wrong\n"
    for row in unclean:
        if row.problem:
            yield f"- {row.minor}: {row.problem}"
        yield from (f"- {row.minor}: `{test}` failed" for test in row.failed)


def _skips(report: MatrixReport) -> Iterator[str]:
    """Yields each reason once, with the versions and the number of tests."""
    tests: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in report.rows:
        for reason in row.skipped.values():
            tests[reason][row.minor] += 1
    if tests:
        yield "\n## What was skipped\n"
    for reason, minors in tests.items():
        counted = ", ".join(f"{count} on {minor}" for minor, count in minors.items())
        yield f"- {reason} ({counted})"


def _runtimes(rows: Iterable[MatrixRow]) -> Iterator[str]:
    pairs = [(row.versions.get("containerd"), row.versions.get("runc")) for row in rows]
    for containerd, runc in dict.fromkeys(pairs):
        if containerd and runc:
            yield f"containerd {containerd} with runc {runc}"


def _values(rows: Iterable[MatrixRow], program: str) -> Sequence[str]:
    return [*dict.fromkeys(row.versions[program] for row in rows if program in row.versions)]


def _listed(names: Iterable[str]) -> str:
    *others, last = [*names] or [NONE]
    return f"{', '.join(others)} and {last}" if others else last


def _text(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
