"""What people see of the memory that is in use."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.decide.use.top_report import (
    CardUseRow,
    ContainerUseRow,
    NodeUseRow,
    TopOf,
    TopReport,
    UseRow,
)
from gpushare_cli.output.bar import held_bar
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell, PageTable, Shrink, TableColumn
from gpushare_cli.views.card_tables import amount_text, notes, rows_shown
from gpushare_cli.wording import counted, memory_text

_NODE = TableColumn(header="node", shrink=Shrink.FOLD, min_width=12)
_CARD = TableColumn(header="card", is_number=True)
_AMOUNTS = (
    TableColumn(header="used", is_number=True),
    TableColumn(header="asked", is_number=True),
    TableColumn(header="used of asked", is_number=True),
)
_BAR = TableColumn(header="use")
_MEMORY = TableColumn(header="memory", is_number=True)
_NOTE = TableColumn(header="note", shrink=Shrink.FOLD, min_width=8)
_UUID = TableColumn(header="uuid", only_wide=True)

_COLUMNS = {
    TopOf.NODES: (_NODE, TableColumn(header="cards", is_number=True), _BAR, _MEMORY, *_AMOUNTS, _NOTE),
    TopOf.CARDS: (
        _NODE,
        _CARD,
        TableColumn(header="pods", is_number=True),
        _BAR,
        _MEMORY,
        *_AMOUNTS,
        _NOTE,
        _UUID,
    ),
    TopOf.PODS: (
        TableColumn(header="pod", shrink=Shrink.FOLD, min_width=16),
        TableColumn(header="container", shrink=Shrink.FOLD, min_width=9),
        _NODE,
        _CARD,
        *_AMOUNTS,
        _NOTE,
        _UUID,
    ),
}


def top_view(report: TopReport, page: OutputPage) -> Iterable[RenderableType]:
    rows: Sequence[UseRow] = report.nodes or report.cards or report.containers
    if rows:
        yield from _over(rows)
        shown = rows_shown(rows, page)
        cells = [_cells(row, page, shows_namespace=not report.namespace) for row in shown]
        yield PageTable(_COLUMNS[report.of], cells, page=page)
        if len(shown) < len(rows):
            yield sentence(f"{len(rows) - len(shown):,} more: -o wide shows all.")
    else:
        yield from _nothing(report)
    yield from notes(report.unmeasured, report.unread)


def _over(rows: Iterable[UseRow]) -> Iterator[RenderableType]:
    if over := sum(row.exceeding for row in rows):
        verb = "uses more than it" if over == 1 else "use more than they"
        yield heading(f"{counted(over, 'container')} {verb} asked for.", "bold red")


def _nothing(report: TopReport) -> Iterator[RenderableType]:
    if not report.namespace:
        yield heading("No pod holds units of a card." if report.of is TopOf.PODS else "No node shares cards.")
        return
    yield heading(f"No pod in namespace {report.namespace} holds units of a card.")
    yield to_type(f"kubectl gpushare top {report.of} -A")


def _cells(row: UseRow, page: OutputPage, *, shows_namespace: bool) -> Sequence[Cell]:
    share = "?" if row.used_bytes is None else "-" if row.share is None else f"{row.share:.0%}"
    amounts = (amount_text(row.used_bytes), memory_text(row.asked_bytes), share, _note(row))
    if isinstance(row, NodeUseRow):
        return (row.node, row.cards, _bar(row, page), memory_text(row.memory_bytes), *amounts)
    if isinstance(row, CardUseRow):
        memory = memory_text(row.memory_bytes)
        return (row.node, row.card, row.pods, _bar(row, page), memory, *amounts, row.uuid)
    if isinstance(row, ContainerUseRow):
        pod = f"{row.namespace}/{row.pod}" if shows_namespace else row.pod
        return (pod, row.container, row.node, row.card, *amounts, row.card_uuid)
    return amounts


def _bar(row: NodeUseRow | CardUseRow, page: OutputPage) -> Cell:
    if row.used_bytes is None:
        return "?"
    return held_bar(held=row.used_bytes, total=row.memory_bytes, page=page)


def _note(row: UseRow) -> Cell:
    if not row.exceeding:
        return ""
    one = isinstance(row, ContainerUseRow)
    return Text("OVER" if one else f"OVER: {counted(row.exceeding, 'container')}", "bold red")
