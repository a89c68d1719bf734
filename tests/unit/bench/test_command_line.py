"""What a command takes, and what is said of one that could not do what it is measured for."""

import json
import subprocess
import sys

import pytest
from bench.measuring.figures import NotMeasuredError
from bench.peers.programs import ROOT
from bench.rows.command_line import command_figures

WASTEFUL = "import sys; b'x' * (64 << 20); print('a' * 1000); sys.stderr.write('one\\ntwo\\n'); sys.exit(1)"


def test_time_memory_and_what_is_printed_are_those_of_the_command() -> None:
    """Not those of whoever measures it, who is much bigger here."""
    command = [sys.executable, "-m", "bench.readings.command_use", "2", sys.executable, "-c", WASTEFUL]
    _, taken = json.loads(subprocess.check_output(command, cwd=ROOT))["runs"]
    assert taken["seconds"] > 0
    assert taken["cpu"] > 0
    assert 64 < taken["peak"] < 128
    assert (taken["printed"], taken["status"], taken["error"]) == (1001, 1, "two")


def ended(*, status: int = 0, seconds: float = 1.0, peak: float = 60.0) -> dict[str, object]:
    return {
        "status": status,
        "seconds": seconds,
        "cpu": 0.5,
        "peak": peak,
        "printed": 2048,
        "error": "no rights",
    }


def test_the_median_of_the_time_and_the_most_memory_count() -> None:
    runs = [ended(seconds=1.0, peak=160.0), ended(seconds=9.0, status=1), ended(seconds=1.2)]
    figures = command_figures(("simulate", "-f", "MANIFEST"), runs)
    assert [(figure.what, figure.measured, figure.reached) for figure in figures] == [
        ("simulate -f FILE: time", 1.2, True),
        ("simulate -f FILE: processor", 0.5, None),
        ("simulate -f FILE: memory", 160.0, False),
        ("simulate -f FILE: printed", 2.0, None),
    ]


def test_a_command_that_prints_nothing_is_not_measured() -> None:
    """Python, too, ends with status 1 where something is wrong."""
    with pytest.raises(NotMeasuredError, match="ended with 1"):
        command_figures(("status",), [{**ended(status=1), "printed": 0}])


@pytest.mark.parametrize("status", [2, 130, -9])
def test_a_command_that_could_not_look_is_not_measured(status: int) -> None:
    with pytest.raises(NotMeasuredError, match=f"kubectl gpushare status ended with {status}: no rights"):
        command_figures(("status",), [ended(), ended(status=status)])
