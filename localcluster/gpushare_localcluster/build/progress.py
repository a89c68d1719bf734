"""What people see of a long build: a bar on a terminal, elsewhere a line now and then."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import IO, TextIO

from gpushare_localcluster.build.lock import Report

REPORT_SECONDS = 30.0
"""Between two lines where there is no terminal."""
TICK_SECONDS = 0.5
BAR_WIDTH = 24
COLUMNS = 80
"""Of a terminal that does not say how wide it is."""
ERASE_LINE = "\r\x1b[K"
MEASURED_SHARE, MEASURED_SECONDS = 0.05, 5.0
"""From then on the pace of this build says how long it takes, before that the last one's."""


def terminal_of(file: TextIO, environment: Mapping[str, str] = os.environ) -> TextIO | None:
    """Returns ``file`` if a bar can be drawn on it: ``TERM=dumb`` asks for none, and ``CI`` keeps all that is
    drawn in a log."""
    has_cursor = environment.get("TERM") != "dumb" and not environment.get("CI")
    return file if file.isatty() and has_cursor else None


def columns_of(terminal: TextIO) -> int:
    """Returns the width of this terminal: another one, or a file, may have stdout."""
    with suppress(OSError):
        return os.get_terminal_size(terminal.fileno()).columns or COLUMNS
    return COLUMNS


@dataclass(slots=True)
class BuildProgress:
    """Counts packages: what is ``done`` of ``total``."""

    report: Report
    total: int = 0
    """0: unknown."""
    expected: float = 0.0
    """Seconds that the whole build takes, by the last one; 0: unknown."""
    terminal: TextIO | None = None
    clock: Callable[[], float] = time.monotonic
    done: int = 0
    stage: str = ""
    """What is done besides, such as ``linking``."""
    _begun: float = field(init=False)
    _reported: float = field(init=False)

    def __post_init__(self) -> None:
        self._begun = self._reported = self.clock()

    @property
    def seconds(self) -> float:
        return self.clock() - self._begun

    def tick(self) -> None:
        """Shows how far it is, if that is due."""
        if self.terminal:
            bar = f"[{bar_text(self.done, self.total)}] " if self.total else ""
            self._draw(f"{ERASE_LINE}{f'{bar}{self}'[: columns_of(self.terminal) - 1]}")
        elif self.clock() - self._reported >= REPORT_SECONDS:
            self._reported = self.clock()
            self.report(f"still building: {self}")

    def close(self) -> None:
        """Takes the bar away."""
        if self.terminal:
            self._draw(ERASE_LINE)

    def __str__(self) -> str:
        counted = f"{min(self.done, self.total):,} of {self.total:,} packages" if self.total else ""
        left = seconds_left(self.done, self.total, passed=self.seconds, expected=self.expected)
        estimate = f"about {rough_time(left)} left" if left is not None else f"{self.seconds:.0f} s so far"
        return ", ".join(part for part in (counted, self.stage, estimate) if part)

    def _draw(self, text: str) -> None:
        if self.terminal:
            self.terminal.write(text)
            self.terminal.flush()


def bar_text(done: int, total: int) -> str:
    """
    >>> bar_text(1, 2)
    '############............'
    """
    filled = BAR_WIDTH * min(done, total) // total
    return "#" * filled + "." * (BAR_WIDTH - filled)


def seconds_left(done: int, total: int, *, passed: float, expected: float) -> float | None:
    """Returns an estimate by the pace so far, else by the last build; None where neither is known, or where
    only what nobody counts is left, such as linking."""
    if total and done >= total:
        return None
    if total and done >= total * MEASURED_SHARE and passed >= MEASURED_SECONDS:
        return passed * (total - done) / done
    return max(0.0, expected - passed) if expected else None


def rough_time(seconds: float) -> str:
    """
    >>> rough_time(7), rough_time(52), rough_time(215)
    ('10 s', '50 s', '4 min')
    """
    return f"{round(seconds / 60)} min" if seconds >= 90 else f"{max(10, round(seconds, -1)):.0f} s"


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds for a package, remembered in a file from one build to the next."""

    file: Path

    def seconds(self, packages: int) -> float:
        """Returns how long so many take; 0 where no build is remembered."""
        with suppress(OSError, ValueError):
            return packages * float(self.file.read_text())
        return 0.0

    def remember(self, packages: int, seconds: float) -> None:
        """A build of few packages says nothing of one of thousands."""
        if packages >= 100:
            with suppress(OSError):
                self.file.write_text(f"{seconds / packages:.4f}\n")


def run_watched(
    command: Sequence[Path | str],
    progress: BuildProgress,
    take: Callable[[str], None],
    *,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    is_stdout_taken: bool = False,
) -> int:
    """Runs a command and returns its exit status; ``take`` gets each line of its stderr, or of both."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE if is_stdout_taken else None,
        stderr=subprocess.STDOUT if is_stdout_taken else subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            _watch(process.stdout or process.stderr or sys.stdin, progress, take)
        finally:
            progress.close()
    return process.returncode


def _watch(lines: IO[str], progress: BuildProgress, take: Callable[[str], None]) -> None:
    def read() -> None:
        for line in lines:
            take(line.rstrip("\n"))

    reader = Thread(target=read, daemon=True)
    reader.start()
    while reader.is_alive():
        progress.tick()
        reader.join(TICK_SECONDS)
