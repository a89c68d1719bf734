"""Prints reports in the format that was asked for."""

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TextIO

from rich.console import Console, RenderableType

from gpushare_cli.output.format import Format, document_text
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.terminal import console_of, page_of
from gpushare_cli.report import CommandReport


@dataclass(frozen=True, slots=True)
class Printer:
    """Use for any number of reports: with ``--watch`` they come one after the other."""

    file: TextIO
    console: Console
    page: OutputPage
    format: Format

    def print(
        self, report: CommandReport, view: Callable[[Any, OutputPage], Iterable[RenderableType]]
    ) -> None:
        """Raises ``BrokenPipeError`` where nobody reads any more."""
        if self.format in (Format.TABLE, Format.WIDE):
            for part in view(report, self.page):
                self.console.print(part)
        else:
            self.file.write(document_text(report, self.format))
        self.file.flush()


def printer_of(file: TextIO, options: Namespace, environment: Mapping[str, str]) -> Printer:
    console = console_of(file, color=options.color, environment=environment)
    page = page_of(
        console,
        is_wide=options.output is Format.WIDE,
        has_headers=not options.no_headers,
        is_ascii=options.ascii,
    )
    return Printer(file, console, page, options.output)
