"""Headings, sentences, and commands to type. Their texts are made printable."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from gpushare_core.text.printable import printable

INDENT = 2


def heading(text: str, style: str = "bold") -> Text:
    return Text(printable(text), style)


def sentence(text: str, *, indent: int = 0, style: str = "") -> RenderableType:
    """Returns a paragraph that goes on in the next line, with the same indent, where the page ends."""
    paragraph = Text(printable(text), style)
    return Padding(paragraph, (0, 0, 0, indent), expand=False) if indent else paragraph


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
