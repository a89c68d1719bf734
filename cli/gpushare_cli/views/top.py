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
from gpushare_cli.views.card_tables import amount_text, notes, over_text, rows_shown
from gpushare_cli.wording import counted, memory_text
from gpushare_core.text.printable import printable

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
        TableColumn(header="limit", is_number=True, only_wide=True, only_filled=True),
        _NOTE,
        _UUID,
    ),
}


def top_view(report: TopReport, page: OutputPage) -> Iterable[RenderableType]:
    rows: Sequence[UseRow] = report.nodes or report.cards or report.containers
    if rows:
        yield from _over(rows)
        shown = rows_shown(rows, page)
        cells = [_cells(row, report, page) for row in shown]
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


def _cells(row: UseRow, report: TopReport, page: OutputPage) -> Sequence[Cell]:
    share = "?" if row.used_bytes is None else "-" if row.share is None else f"{row.share:.0%}"
    amounts = (amount_text(row.used_bytes), memory_text(row.asked_bytes), share)
    note = _note(row, report.looked_at)
    if isinstance(row, NodeUseRow):
        return (row.node, row.cards, _bar(row, page), memory_text(row.memory_bytes), *amounts, note)
    if isinstance(row, CardUseRow):
        memory = memory_text(row.memory_bytes)
        return (row.node, row.card, row.pods, _bar(row, page), memory, *amounts, note, row.uuid)
    if isinstance(row, ContainerUseRow):
        pod = row.pod if report.namespace else f"{row.namespace}/{row.pod}"
        limit = "" if row.limit_bytes is None else memory_text(row.limit_bytes)
        return (pod, row.container, row.node, row.card, *amounts, limit, note, row.card_uuid)
    return amounts


def _bar(row: NodeUseRow | CardUseRow, page: OutputPage) -> Cell:
    if row.used_bytes is None:
        return "?"
    return held_bar(held=row.used_bytes, total=row.memory_bytes, page=page)


def _note(row: UseRow, looked_at: str) -> Cell:
    if isinstance(row, ContainerUseRow):
        isolation = "no isolation" if row.lacks_isolation else row.isolation
        over = over_text(row.exceeded_since, row.evicted_from, looked_at) if row.exceeding else ""
        text = ", ".join(filter(None, (isolation, over)))
    else:
        text = f"OVER: {counted(row.exceeding, 'container')}" if row.exceeding else ""
    return Text(printable(text), "bold red") if row.exceeding else text
