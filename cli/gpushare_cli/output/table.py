"""Tables, all of one look: no lines, headers in upper case, as kubectl's.

Rich's own table takes 1.5 s for 5,000 rows of eight columns; this one a twentieth of that.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from gpushare_cli.output.page import OutputPage
from gpushare_core.text.printable import printable

GAP = 2
"""Blanks between columns."""
_HEADER = Style(bold=True)

Cell = str | int | Text
Row = Sequence[str | Text]

_ONE_CELL_EACH = re.compile("[ -~\u2500-\u25ff]*").fullmatch
"""Text of characters that are one column wide, each: ASCII and the blocks of bars. Most is."""


class Shrink(Enum):
    """What becomes of a column where the page is too narrow for all. The widest gives first."""

    NEVER = 0
    FOLD = 1
    """The text goes on in the next line."""
    CROP = 2
    """The text is cut and ends with dots. Only for what ``-o wide`` shows whole, or what matters little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    header: str
    is_number: bool = False
    """Aligned to the right."""
    shrink: Shrink = Shrink.NEVER
    min_width: int = 12
    """Of a column that shrinks."""
    only_wide: bool = False
    """Left out but with ``-o wide``."""
    only_filled: bool = False
    """Left out where no row has anything in it."""


class PageTable:
    """A renderable of Rich. Texts are made printable; a ``Text`` has its own style and must be printable."""

    def __init__(
        self, columns: Sequence[TableColumn], rows: Iterable[Sequence[Cell]], *, page: OutputPage
    ) -> None:
        """``rows`` have a cell for each of ``columns``, those for ``-o wide`` alone among them."""
        every = list(rows)
        kept = [
            number
            for number, column in enumerate(columns)
            if (page.is_wide or not column.only_wide)
            and not (column.only_filled and not any(row[number] for row in every))
        ]
        self._page = page
        self._columns = [columns[number] for number in kept]
        self._rows = [[_text(row[number]) for number in kept] for row in every]

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> Iterator[Segment]:
        header: Row = [Text(column.header.upper(), _HEADER) for column in self._columns]
        rows = [*([header] if self._page.has_headers else ()), *self._rows]
        if not console.color_system:
            rows = [[cell if isinstance(cell, str) else cell.plain for cell in row] for row in rows]
        natural = [max(map(_width, cells)) for cells in zip(*rows, strict=True)]
        widths = self._fitting(natural)
        if widths == natural and not console.color_system:
            yield Segment("".join(self._plain_lines(rows, widths)))
            return
        for row in rows:
            for line in self._lines(console, row, widths):
                yield from self._line(console, line, widths)

    def _fitting(self, natural: Sequence[int]) -> list[int]:
        least = [
            width if column.shrink is Shrink.NEVER else min(width, column.min_width)
            for column, width in zip(self._columns, natural, strict=False)
        ]
        excess = sum(natural) + GAP * (len(natural) - 1) - self._page.width
        return shrunk(natural, least, excess)

    def _plain_lines(self, rows: Iterable[Row], widths: Sequence[int]) -> Iterator[str]:
        """Yields lines of cells that all fit, for a pipe: tens of thousands in a moment."""
        aligned = ((">" if column.is_number else "<") for column in self._columns)
        form = (" " * GAP).join(f"{{:{side}{width}}}" for side, width in zip(aligned, widths, strict=True))
        for row in rows:
            line = form.format(*row).rstrip()
            if not _ONE_CELL_EACH(line):
                padded = zip(row, self._columns, widths, strict=True)
                line = (" " * GAP).join(_padded(*cell) for cell in padded).rstrip()
            yield f"{line}\n"

    def _lines(self, console: Console, row: Row, widths: Sequence[int]) -> Iterable[Row]:
        """Returns the lines of a row: one, unless a cell is folded."""
        if all(_width(cell) <= width for cell, width in zip(row, widths, strict=True)):
            return (row,)
        parts = [
            self._fitted(console, cell, column, width)
            for cell, column, width in zip(row, self._columns, widths, strict=True)
        ]
        height = max(map(len, parts))
        filled = [[*part, *[""] * (height - len(part))] for part in parts]
        return zip(*filled, strict=True)

    def _fitted(self, console: Console, cell: str | Text, column: TableColumn, width: int) -> Row:
        if _width(cell) <= width:
            return (cell,)
        text = cell if isinstance(cell, Text) else Text(cell)
        if column.shrink is Shrink.FOLD:
            return [_stripped(line) for line in text.wrap(console, width, overflow="fold")]
        dots = "..." if self._page.is_ascii else "\u2026"
        return (Text(set_cell_size(text.plain, width - len(dots)) + dots, text.style),)

    def _line(self, console: Console, cells: Row, widths: Sequence[int]) -> Iterator[Segment]:
        """Yields a line without blanks at its end. Cells without a style are one segment: each costs."""
        blanks, plain = 0, ""
        for cell, column, width in zip(cells, self._columns, widths, strict=True):
            own = _width(cell)
            if not own:
                blanks += width + GAP
                continue
            before, after = (width - own, 0) if column.is_number else (0, width - own)
            plain += " " * (blanks + before)
            if isinstance(cell, str):
                plain += cell
            else:
                yield Segment(plain)
                yield from _segments(console, cell)
                plain = ""
            blanks = after + GAP
        yield Segment(f"{plain}\n")


def shrunk(natural: Sequence[int], least: Sequence[int], excess: int) -> list[int]:
    """Returns the widths less ``excess`` columns, as far as ``least`` allows: the widest gives first."""
    widths = list(natural)
    for _ in range(max(0, excess)):
        spare = [number for number, width in enumerate(widths) if width > least[number]]
        if not spare:
            break
        widths[max(spare, key=widths.__getitem__)] -= 1
    return widths


def _text(cell: Cell) -> str | Text:
    if isinstance(cell, str):
        return cell if cell.isprintable() else printable(cell)
    return cell if isinstance(cell, Text) else str(cell)


def _width(cell: str | Text) -> int:
    if isinstance(cell, Text):
        return cell.cell_len
    return len(cell) if cell.isascii() or _ONE_CELL_EACH(cell) else cell_len(cell)


def _padded(cell: str | Text, column: TableColumn, width: int) -> str:
    blanks = " " * (width - _width(cell))
    return f"{blanks}{cell}" if column.is_number else f"{cell}{blanks}"


def _segments(console: Console, cell: Text) -> Iterable[Segment]:
    return Segment.apply_style(cell.render(console), console.get_style(cell.style))


def _stripped(line: Text) -> Text:
    line.rstrip()
    return line
