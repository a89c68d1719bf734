"""``--watch`` in place on a terminal, one page after the other in a pipe."""

import io
from argparse import Namespace
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import ClassVar

import pytest
from rich.console import RenderableType

from gpushare_cli.errors import CannotLookError
from gpushare_cli.output.format import Format
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.printer import Printer, printer_of
from gpushare_cli.output.terminal import ColorChoice
from gpushare_cli.output.watch import PageSequence, Screen, fitted, pages_of, watch
from gpushare_cli.report import CommandReport

TERMINAL = {"TERM": "xterm", "COLUMNS": "60"}


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


class CountReport(CommandReport, frozen=True, kw_only=True):
    kind: ClassVar[str] = "Count"
    number: int


class StopWatchingError(Exception):
    """Ends a watch, as Ctrl-C does."""


def view(report: CountReport, _page: OutputPage) -> Iterable[RenderableType]:
    yield f"page {report.number}"


def printer(file: io.StringIO, output: Format = Format.TABLE) -> Printer:
    options = Namespace(color=ColorChoice.AUTO, output=output, no_headers=False, ascii=False)
    return printer_of(file, options, TERMINAL)


def noon() -> datetime:
    return datetime(2026, 5, 1, 12, tzinfo=UTC)


async def watched(file: io.StringIO, *found: CommandReport | Exception, output: Format = Format.TABLE) -> str:
    """Returns what was written to the errors, after one look for each of ``found``."""
    answers, errors = iter(found), io.StringIO()

    async def look() -> CommandReport:
        answer = next(answers, StopWatchingError())
        if isinstance(answer, Exception):
            raise answer
        return answer

    chosen = printer(file, output)
    with (
        pytest.raises(StopWatchingError),
        pages_of(chosen, errors, title="Every 2s", now=noon, environment=TERMINAL) as pages,
    ):
        await watch(look, view, printer=chosen, pages=pages, seconds=0)
    return errors.getvalue()


async def test_a_pipe_gets_one_page_after_the_other_with_the_time() -> None:
    file = io.StringIO()
    await watched(file, CountReport(number=1), CountReport(number=2))
    assert file.getvalue() == "2026-05-01T12:00:00Z\npage 1\n\n2026-05-01T12:00:00Z\npage 2\n"


async def test_documents_stay_readable_one_after_the_other() -> None:
    file = io.StringIO()
    await watched(file, CountReport(number=1), CountReport(number=2), output=Format.YAML)
    assert file.getvalue().count("---\n") == 1
    assert file.getvalue().startswith("apiVersion: ")


async def test_a_failed_look_is_said_and_the_watch_goes_on() -> None:
    file = io.StringIO()
    errors = await watched(file, CountReport(number=1), CannotLookError("gone"), CountReport(number=2))
    assert errors == "2026-05-01T12:00:00Z kubectl gpushare: gone\n"
    assert "page 2" in file.getvalue()


async def test_what_cannot_be_looked_at_the_first_time_is_no_watch() -> None:
    async def look() -> CommandReport:
        raise CannotLookError("no such cluster")

    chosen = printer(io.StringIO())
    with pytest.raises(CannotLookError):
        await watch(look, view, printer=chosen, pages=PageSequence(chosen, io.StringIO(), noon), seconds=0)


async def test_a_terminal_is_redrawn_in_place_and_left_as_it_was_with_the_last_page() -> None:
    file = Terminal()
    await watched(file, CountReport(number=1), CountReport(number=2))
    written = file.getvalue()
    assert written.startswith("\x1b[?1049h\x1b[?25l")
    assert written.count("\x1b[H") == 2
    assert written.endswith("\x1b[?25h\x1b[?1049lpage 2\n")


async def test_a_terminal_shows_what_failed_above_the_last_page() -> None:
    file = Terminal()
    await watched(file, CountReport(number=1), CannotLookError("gone"))
    drawn = file.getvalue().split("\x1b[H")[-1]
    assert drawn.index("gone") < drawn.index("What follows is from before.") < drawn.index("page 1")


def test_documents_are_never_drawn_on_a_screen() -> None:
    chosen = printer(Terminal(), Format.JSON)
    pages = pages_of(chosen, io.StringIO(), title="", now=noon, environment=TERMINAL)
    assert not isinstance(pages, Screen)


def test_a_small_window_says_how_much_it_lacks() -> None:
    assert fitted(["1", "2", "3"], 3) == ["1", "2", "3"]
    assert fitted(["1", "2", "3", "4"], 3) == ["1", "2", "... 2 more lines: a larger window shows them"]
