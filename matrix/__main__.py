"""Runs the end-to-end tests, and the scheduler's Go tests, on one version of Kubernetes after the other.

The report in docs/versions.json, and the documents that are made of it, have each row as soon as it is there.
With ``--tests`` only these are run, and nothing is written.
"""

import argparse
import signal
import sys
from collections.abc import Iterator, Sequence

from gpushare_localcluster.build.minors import MINORS, minor_named
from gpushare_localcluster.errors import LocalClusterError
from matrix.documents import write_documents
from matrix.report import MatrixRow, load, save
from matrix.run import ALL_TESTS, INTERRUPTED, MinorRun


def main(arguments: Sequence[str]) -> int:
    """Returns the exit code: 0, or 1 when not every test passed on every version."""
    try:
        options = parse(arguments)
    except LocalClusterError as error:
        print(error, file=sys.stderr)
        return 1
    rows = [kept(row, options) for row in run(options)]
    print("\n".join(summary(row) for row in rows), flush=True)
    return 0 if len(rows) == len(options.minors) and all(row.is_clean for row in rows) else 1


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Raises LocalClusterError, which lists all minors, where one is named that is none."""
    parser = argparse.ArgumentParser(prog="matrix", description=__doc__)
    parser.add_argument("minors", nargs="*", help="such as 1.34; without any: all")
    parser.add_argument("--tests", nargs="*", default=[], help="files or names, as pytest takes them")
    parser.add_argument("--processes", default="auto", help="that run tests side by side (%(default)s)")
    parser.add_argument("--minutes", type=float, default=90.0, help="at most, for each version (%(default)g)")
    options = parser.parse_args(arguments)
    options.minors = [minor_named(name).name for name in options.minors or [minor.name for minor in MINORS]]
    return options


def run(options: argparse.Namespace) -> Iterator[MatrixRow]:
    """Yields a row for each minor; the last one is that of an interrupted run."""
    tests = options.tests or ALL_TESTS
    for number, minor in enumerate(options.minors, start=1):
        print(f"\nmatrix: Kubernetes {minor}, {number} of {len(options.minors)}", flush=True)
        row = MinorRun(minor, tests, options.processes, options.minutes * 60).row()
        yield row
        if row.problem == INTERRUPTED:
            return


def kept(row: MatrixRow, options: argparse.Namespace) -> MatrixRow:
    """Writes the row into the report where it is one of all tests."""
    if not options.tests:
        report = load().with_row(row)
        save(report)
        write_documents(report)
    return row


def summary(row: MatrixRow) -> str:
    """Returns what came of one minor."""
    counts = f"{row.passed} passed, {len(row.failed)} failed, {len(row.skipped)} skipped"
    lines = [f"{row.minor}: {counts} in {row.minutes:g} minutes"]
    if row.problem:
        lines.append(f"  {row.problem}")
    return "\n".join([*lines, *(f"  failed: {test}" for test in row.failed)])


if __name__ == "__main__":
    # Whoever ends it from outside gets what was run as well, and no cluster stays. A shell has jobs in the
    # background ignore SIGINT, and their children, too.
    for ending in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ending, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
