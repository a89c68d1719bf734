"""What is being done, for somebody who waits at a terminal."""

import asyncio
from asyncio import TimerHandle
from typing import Protocol, TextIO

from gpushare_core.text.printable import printable

DELAY_SECONDS = 1.0
"""What is done by then says nothing."""
_ERASE_LINE = "\r\x1b[K"


class ProgressLine(Protocol):
    """Shows on stderr what is being done, from ``DELAY_SECONDS`` after its first call on."""

    def doing(self, what: str) -> None:
        """Replaces the previous text. ``what``: such as ``reading 5,000 GPUShareNodes``."""

    def done(self) -> None:
        """Takes the text away, before something else is printed. May be called at any time."""


class Silence:
    """Shows nothing: nobody waits at a pipe."""

    def doing(self, what: str) -> None: ...

    def done(self) -> None: ...


class StatusLine:
    """One line of a terminal, with the seconds that have passed. Needs a running event loop."""

    def __init__(self, file: TextIO, width: int) -> None:
        self._file = file
        self._width = width
        self._what = ""
        self._timer: TimerHandle | None = None
        self._seconds = 0.0

    def doing(self, what: str) -> None:
        self._what = printable(what)
        if self._timer is None:
            self._wait()
        elif self._seconds:
            self._draw()

    def done(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._seconds:
            self._write(_ERASE_LINE)
        self._timer, self._seconds = None, 0.0

    def _wait(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(DELAY_SECONDS, self._tick)

    def _tick(self) -> None:
        self._seconds += DELAY_SECONDS
        self._draw()
        self._wait()

    def _draw(self) -> None:
        line = f"{self._what} ... {self._seconds:.0f}s"
        self._write(_ERASE_LINE + line[: self._width - 1])

    def _write(self, text: str) -> None:
        self._file.write(text)
        self._file.flush()
