"""What a view draws, as a terminal without colours shows it."""

import io
from collections.abc import Iterable

from rich.console import Console, RenderableType

from gpushare_cli.output.page import OutputPage


def page_of_width(width: int = 80, *, is_wide: bool = False, is_ascii: bool = True) -> OutputPage:
    return OutputPage(width=width, is_wide=is_wide, is_ascii=is_ascii)


def drawn(parts: Iterable[RenderableType], page: OutputPage) -> str:
    """Returns the text, without blanks at the ends of its lines."""
    file = io.StringIO()
    console = Console(file=file, width=page.width, markup=False, emoji=False, highlight=False)
    for part in parts:
        console.print(part, crop=False)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
