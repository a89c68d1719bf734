"""What people see of an audit: a table of the differences, the sentence of each, and what was compared."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from gpushare_cli.decide.audit import AuditDifference, AuditReport
from gpushare_cli.decide.residue import ResidueReport
from gpushare_cli.output.page import OutputPage
from gpushare_cli.wording import counted
from gpushare_core.residue import KUBELET_SECONDS
from gpushare_core.text.printable import printable

CELL_BYTES = 320
"""In the table; a namespace and the name of a pod have 317 at most."""
LINE_BYTES = 16 * 1024
"""The value of a variable that a pod sets has up to a million; JSON shows it in full."""
COLUMNS = ("rule", "kind", "node", "card", "pod")


def audit_view(report: AuditReport, page: OutputPage) -> Iterator[RenderableType]:
    if report.differences:
        yield _table(report.differences, page)
        yield ""
        yield from _lines(f"{difference.node}: {difference.sentence}" for difference in report.differences)
        yield ""
    looked = f"{counted(report.nodes, 'node')}, {counted(report.pods, 'pod')}: {', '.join(report.books)}"
    found = counted(len(report.differences), "difference") if report.differences else "No difference"
    yield from _lines([f"{found}. Compared on {looked}."])
    if report.unread:
        yield from _lines([f"Not compared: {'; '.join(report.unread)}."])


def residue_view(report: ResidueReport, _page: OutputPage) -> Iterator[RenderableType]:
    found = report.residue
    yield from _lines(f"{left.where}: {left.sentence}" for left in found)
    if found:
        yield ""
    summary = f"{counted(len(found), 'thing')} left" if found else "Nothing is left"
    passing = sum(left.passes for left in found)
    verb = "goes by itself" if passing == 1 else "go by themselves"
    goes = f", {passing} of which {verb} within {KUBELET_SECONDS // 60} minutes" if passing else ""
    yield from _lines([f"{summary}{goes}. Looked at {', '.join(report.looked)}."])


def _table(differences: Sequence[AuditDifference], page: OutputPage) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), show_header=page.has_headers)
    for name in COLUMNS:
        table.add_column(name.upper(), overflow="fold")
    for difference in differences:
        cells = (printable(getattr(difference, name), max_bytes=CELL_BYTES) for name in COLUMNS)
        table.add_row(*(Text(cell or "-") for cell in cells))
    return table


def _lines(lines: Iterable[str]) -> Iterator[Text]:
    """Texts from objects and files must not end a line, move the cursor or fill the screen."""
    yield from (Text(printable(line, max_bytes=LINE_BYTES)) for line in lines)
