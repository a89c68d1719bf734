"""``--watch``: the same question again and again, in place on a terminal, one after the other in a pipe."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Never, Protocol, TextIO

from gpushare_cli.errors import CannotLookError
from gpushare_cli.output.format import Format
from gpushare_cli.output.printer import Printer, View
from gpushare_cli.output.terminal import is_terminal
from gpushare_cli.report import CommandReport
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.text.printable import printable

_OPEN = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The terminal's second screen, no cursor, no line that goes on in the next."""
_CLOSE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_HOME, _REST_OF_LINE, _REST_OF_SCREEN = "\x1b[H", "\x1b[K", "\x1b[J"


class Pages(Protocol):
    """Where one page after the other is shown."""

    def show(self, text: str) -> None: ...

    def warn(self, sentence: str) -> None:
        """Shows that this time there is no new page."""


class PageSequence:
    """For a pipe or a file: pages one after the other, each after the time; documents as their format has
    it."""

    def __init__(self, printer: Printer, errors: TextIO, now: Callable[[], datetime]) -> None:
        self._printer = printer
        self._errors = errors
        self._now = now
        self._is_first = True

    def __enter__(self) -> "PageSequence":
        return self

    def __exit__(self, *_error: object) -> None: ...

    def show(self, text: str) -> None:
        self._printer.file.write(self._separator() + text)
        self._printer.file.flush()
        self._is_first = False

    def warn(self, sentence: str) -> None:
        self._errors.write(f"{rfc3339(self._now())} {sentence}\n")
        self._errors.flush()

    def _separator(self) -> str:
        if self._printer.is_for_people and self._printer.has_headers:
            return f"{'' if self._is_first else chr(10)}{rfc3339(self._now())}\n"
        return "---\n" if self._printer.format is Format.YAML and not self._is_first else ""


class Screen:
    """A terminal: each page takes the place of the one before, in one write, so that nothing flickers. Leaves
    the terminal as it was, with the last page on it."""

    def __init__(self, printer: Printer, title: str, now: Callable[[], datetime]) -> None:
        self._printer = printer
        self._title = title
        self._now = now
        self._page = ""

    def __enter__(self) -> "Screen":
        self._write(_OPEN)
        return self

    def __exit__(self, *_error: object) -> None:
        self._write(_CLOSE + self._page)

    def show(self, text: str) -> None:
        self._page = text
        self._draw([])

    def warn(self, sentence: str) -> None:
        self._draw([sentence, "What follows is from before.", ""] if self._page else [sentence])

    def _draw(self, first: list[str]) -> None:
        size = self._printer.console.size
        clock = self._now().astimezone().strftime("%H:%M:%S")
        title = f"{self._title[: max(0, size.width - 10)]:<{max(0, size.width - 9)}} {clock}"
        lines = fitted([title, "", *first, *self._page.splitlines()], size.height)
        end = f"{_REST_OF_LINE}\r\n"
        self._write(_HOME + end.join(lines) + _REST_OF_LINE + _REST_OF_SCREEN)

    def _write(self, text: str) -> None:
        self._printer.file.write(text)
        self._printer.file.flush()


def fitted(lines: list[str], height: int) -> list[str]:
    """Returns the lines that a screen has room for; the last one says how many are missing."""
    if len(lines) <= height:
        return lines
    missing = len(lines) - height + 1
    return [*lines[: height - 1], f"... {missing} more lines: a larger window shows them"]


def pages_of(
    printer: Printer,
    errors: TextIO,
    *,
    title: str,
    now: Callable[[], datetime],
    environment: Mapping[str, str],
) -> "PageSequence | Screen":
    if printer.is_for_people and is_terminal(printer.file, environment):
        return Screen(printer, title, now)
    return PageSequence(printer, errors, now)


async def watch(
    look: Callable[[], Awaitable[CommandReport]],
    view: View,
    *,
    printer: Printer,
    pages: Pages,
    seconds: float,
) -> Never:
    """Goes on after a look that failed, except after the first: a wrong address stays wrong.

    Raises ``BrokenPipeError`` where nobody reads any more.
    """
    has_looked = False
    while True:
        try:
            pages.show(printer.text(await look(), view))
            has_looked = True
        except (CannotLookError, ApiError, UnreachableError) as error:
            if not has_looked:
                raise
            pages.warn(f"kubectl gpushare: {printable(str(error))}")
        await asyncio.sleep(seconds)
