"""A plugin of pytest that writes what came of each phase of each test, one JSON object a line, as it comes.

So an interrupted run has what was run; of a test that did not end, pytest's JUnit XML says that it passed.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

OPTION = "--record"


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """What came of the setup, the call or the teardown of a test."""

    test: str
    """Such as ``tests/e2e/test_image.py::TestImage::test_licences_are_in_it``."""
    when: str
    outcome: str
    reason: str = ""
    """Of a skip."""
    properties: list[tuple[str, Any]] = []
    """What the test recorded."""


class Recorder:
    """Hears of the tests of all processes."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        phase = Phase(
            test=report.nodeid,
            when=report.when or "",
            outcome=report.outcome,
            reason=skip_reason(report),
            properties=[(name, value) for name, value in report.user_properties],
        )
        with self._file.open("ab") as lines:
            lines.write(msgspec.json.encode(phase) + b"\n")


def skip_reason(report: pytest.TestReport) -> str:
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return ""
    return report.longrepr[-1].removeprefix("Skipped: ")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(OPTION, type=Path, metavar="FILE", help="write what came of each test into FILE")


def pytest_configure(config: pytest.Config) -> None:
    is_controller = not hasattr(config, "workerinput")
    if is_controller and (file := config.getoption(OPTION)):
        config.pluginmanager.register(Recorder(file))
