"""What people see of the versions."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from rich.console import RenderableType

from gpushare_cli.decide.version import ProgramVersion, VersionReport
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell, PageTable, TableColumn
from gpushare_cli.views.problems import problems_view, unread_view
from gpushare_cli.wording import counted
from gpushare_core.api.conditions import UNKNOWN

COLUMNS = (
    TableColumn(header="program"),
    TableColumn(header="version"),
    TableColumn(header="runs on"),
)
COUNTED = {"operator": "pod", "plugin": "node", "extender": "pod", "scheduler": "pod", "hostctl": "host"}
"""Program -> what its number counts."""


def version_view(report: VersionReport, page: OutputPage) -> Iterable[RenderableType]:
    rows: list[tuple[Cell, ...]] = [("client", report.client, "this machine")]
    rows += [(row.program, row.version, _where(row)) for row in report.programs]
    rows.append(("Kubernetes", report.kubernetes or UNKNOWN, "the API server"))
    yield PageTable(COLUMNS, rows, page=page)
    if report.problems or report.unread:
        yield ""
        yield from problems_view(report.problems, page)
        yield from unread_view(report.unread)


def _where(row: ProgramVersion) -> str:
    return "-" if row.count is None else counted(row.count, COUNTED[row.program])


def versions_line(client: str, kubernetes: str, programs: Sequence[ProgramVersion]) -> str:
    """Returns ``Versions: 0.1.0 (client, operator), Kubernetes v1.36.3``, or each program's."""
    known = {row.version for row in programs} | {client}
    if len(known) == 1:
        ours = f"{client} ({', '.join(('client', *_names(programs)))})"
    else:
        parts = [f"client {client}"]
        parts += [
            f"{program} {', '.join(_counted(row) for row in rows)}"
            for program, rows in groupby(programs, key=lambda row: row.program)
        ]
        ours = "; ".join(parts)
    return f"Versions: {ours}, Kubernetes {kubernetes or UNKNOWN}"


def _names(programs: Sequence[ProgramVersion]) -> list[str]:
    return [program for program, _ in groupby(programs, key=lambda row: row.program)]


def _counted(row: ProgramVersion) -> str:
    return row.version if row.count is None else f"{row.version} ({row.count})"
