"""Reports as text, in the format that was asked for."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType

from gpushare_cli.output.format import Format, document_parts
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.terminal import console_of, page_of
from gpushare_cli.report import CommandReport

View = Callable[[Any, OutputPage], Iterable[RenderableType]]
"""From the report of a command to what people see of it."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """All that a view yields, as one: to print is costly, and a view of a whole cluster has thousands."""

    parts: Iterable[RenderableType]

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> Iterator[RenderableType]:
        yield from self.parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Printer:
    """Use for any number of reports of one command."""

    file: TextIO
    console: Console
    format: Format
    has_headers: bool = True
    is_ascii: bool = False

    @property
    def is_for_people(self) -> bool:
        return self.format.is_for_people

    @property
    def page(self) -> OutputPage:
        """As wide as the terminal is now."""
        return page_of(
            self.console,
            is_wide=self.format is Format.WIDE,
            has_headers=self.has_headers,
            is_ascii=self.is_ascii,
        )

    def text(self, report: CommandReport, view: View) -> str:
        return "".join(self._parts(report, view))

    def _parts(self, report: CommandReport, view: View) -> Iterable[str]:
        if not self.is_for_people:
            return document_parts(report, self.format)
        page = self.page
        with self.console.capture() as captured:
            self.console.print(_Parts(view(report, page)), crop=False)
        text = captured.get()
        return (text.encode("ascii", "backslashreplace").decode() if page.is_ascii else text,)

    def print(self, report: CommandReport, view: View) -> None:
        """Raises ``BrokenPipeError`` where nobody reads any more."""
        self.file.writelines(self._parts(report, view))
        self.file.flush()


def printer_of(file: TextIO, options: Namespace, environment: Mapping[str, str]) -> Printer:
    return Printer(
        file=file,
        console=console_of(file, color=options.color, environment=environment),
        format=options.output,
        has_headers=not options.no_headers,
        is_ascii=options.ascii,
    )
