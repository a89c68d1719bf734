"""Headings, sentences, and commands to type. Their texts are made printable."""

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from gpushare_core.text.printable import printable

INDENT = 2


def heading(text: str, style: str = "bold") -> Text:
    return Text(printable(text), style)


def sentence(text: str, *, indent: int = 0, style: str = "") -> RenderableType:
    """Returns a paragraph that goes on in the next line, with the same indent, where the page ends."""
    paragraph = Text(printable(text), style)
    return Padding(paragraph, (0, 0, 0, indent), expand=False) if indent else paragraph


def to_type(command: str, *, indent: int = INDENT) -> Text:
    """Returns a command in one line, however long, that people can copy whole."""
    return Text(" " * indent + printable(command), no_wrap=True, overflow="ignore")
