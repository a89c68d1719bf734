"""What people see of a long build."""

import io
import sys
from pathlib import Path

import pytest

from gpushare_localcluster.build import environment
from gpushare_localcluster.build.progress import (
    BuildProgress,
    Pace,
    bar_text,
    rough_time,
    run_watched,
    seconds_left,
    terminal_of,
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_estimate_is_that_of_the_last_build_until_this_one_has_a_pace() -> None:
    assert seconds_left(0, 1000, passed=1.0, expected=300.0) == 299.0
    assert seconds_left(40, 1000, passed=10.0, expected=300.0) == 290.0
    assert seconds_left(500, 1000, passed=100.0, expected=300.0) == 100.0


def test_without_a_last_build_there_is_no_estimate_at_first() -> None:
    assert seconds_left(0, 1000, passed=1.0, expected=0.0) is None
    assert seconds_left(0, 0, passed=100.0, expected=0.0) is None


def test_what_comes_after_the_last_package_has_no_estimate() -> None:
    assert seconds_left(72, 72, passed=100.0, expected=300.0) is None


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.0, "10 s"), (44.0, "40 s"), (90.0, "2 min"), (250.0, "4 min")]
)
def test_times_are_rough(seconds: float, text: str) -> None:
    assert rough_time(seconds) == text


def test_a_bar_is_never_longer_than_whole() -> None:
    assert bar_text(0, 3) == "." * 24
    assert bar_text(5, 3) == "#" * 24


def test_on_a_terminal_one_line_is_drawn_again() -> None:
    clock, terminal = Clock(), Terminal()
    progress = BuildProgress(pytest.fail, total=2831, terminal=terminal, clock=clock)
    progress.done, clock.now = 1204, 100.0
    progress.tick()
    progress.close()
    drawn = terminal.getvalue().split("\r\x1b[K")
    assert drawn[1] == "[##########..............] 1,204 of 2,831 packages, about 2 min left"
    assert drawn[-1] == "", "taken away"


def test_in_a_pipe_a_line_comes_every_half_minute() -> None:
    clock, said = Clock(), list[str]()
    progress = BuildProgress(said.append, total=100, expected=240.0, clock=clock)
    for now in range(65):
        clock.now = float(now)
        progress.tick()
    progress.close()
    assert said == [
        "still building: 0 of 100 packages, about 4 min left",
        "still building: 0 of 100 packages, about 3 min left",
    ]


def test_what_is_unknown_is_not_said() -> None:
    clock = Clock()
    progress = BuildProgress(pytest.fail, stage="linking", clock=clock)
    clock.now = 12.0
    assert str(progress) == "linking, 12 s so far"


def test_a_pace_is_remembered_but_for_small_builds(tmp_path: Path) -> None:
    pace = Pace(tmp_path / "pace")
    pace.remember(20, 90.0)
    assert pace.seconds(1000) == 0.0
    pace.remember(2000, 200.0)
    assert pace.seconds(1000) == 100.0
    (tmp_path / "pace").write_text("soon")
    assert pace.seconds(1000) == 0.0


def test_only_a_terminal_with_a_cursor_gets_a_bar() -> None:
    terminal = Terminal()
    assert terminal_of(terminal, {"TERM": "xterm"}) is terminal
    assert terminal_of(terminal, {"TERM": "dumb"}) is None
    assert terminal_of(terminal, {"TERM": "xterm", "CI": "true"}) is None
    assert terminal_of(io.StringIO(), {}) is None


def test_each_line_of_a_command_is_taken() -> None:
    lines: list[str] = []
    progress = BuildProgress(pytest.fail)
    program = "import sys; print('out'); print('error', file=sys.stderr); sys.exit(3)"
    assert run_watched([sys.executable, "-c", program], progress, lines.append, is_stdout_taken=True) == 3
    assert sorted(lines) == ["error", "out"]


LOCK = """\
# Made by uv.
aiohttp==3.13.2 \\
    --hash=sha256:0
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:1
"""


def test_packages_of_a_lock_are_counted() -> None:
    assert environment.count_packages(LOCK.splitlines()) == 2


def test_a_failed_installation_says_what_pip_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    python, lock = tmp_path / "python", tmp_path / "requirements.lock"
    python.write_text("#!/bin/sh\necho Collecting aiohttp; echo ERROR: no such hash; exit 1\n")
    python.chmod(0o755)
    lock.write_text(LOCK)
    assert environment.main([str(python), str(lock)]) == 1
    assert "ERROR: no such hash" in capfd.readouterr().err
