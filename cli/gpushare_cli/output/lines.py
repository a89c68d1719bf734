"""Headings, sentences, and commands to type. Their texts are made printable."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.text import Text

from gpushare_core.text.printable import printable

INDENT = 2
FEWEST_COLUMNS = 20
"""Of a paragraph, however narrow the page."""


def heading(text: str, style: str = "bold") -> Text:
    return Text(printable(text), style)


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """Text that goes on in the next line where the page ends; no line ends with blanks."""

    text: Text
    indent: int = 0
    hanging: int = 0
    """Of all lines but the first, besides ``indent``."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        width = max(FEWEST_COLUMNS, options.max_width - self.indent - self.hanging)
        style = console.get_style(self.text.style)
        plain = self.text.plain
        if not console.color_system and plain.isascii() and len(plain) <= width:
            yield Segment(f"{' ' * self.indent}{plain.rstrip()}\n")
            return
        for number, line in enumerate(self.text.wrap(console, width)):
            line.rstrip()
            yield Segment(" " * (self.indent + (self.hanging if number else 0)))
            yield from Segment.apply_style(line.render(console), style)
            yield Segment.line()


def sentence(text: str | Text, *, indent: int = 0, hanging: int = 0, style: str = "") -> Paragraph:
    """A ``Text`` has its own styles and must be printable."""
    shown = text if isinstance(text, Text) else Text(printable(text), style)
    return Paragraph(text=shown, indent=indent, hanging=hanging)


@dataclass(frozen=True, slots=True)
class WholeLine:
    """A line that the terminal breaks if it must: whoever copies it gets it whole."""

    text: str

    def __rich_console__(self, _console: Console, _options: ConsoleOptions) -> Iterator[Segment]:
        yield Segment(self.text)
        yield Segment.line()


def to_type(command: str, *, indent: int = INDENT) -> WholeLine:
    """Returns a command, which people copy."""
    return WholeLine(" " * indent + printable(command))
