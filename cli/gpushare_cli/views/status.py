"""What people see of a status: one page that begins with the answer."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.decide.problems.facts import POLICIES, SHARE_NODES
from gpushare_cli.decide.status import PolicyState, StatusReport
from gpushare_cli.output.bar import held_bar
from gpushare_cli.output.lines import heading, sentence
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell, PageTable, Shrink, TableColumn
from gpushare_cli.views.installation.version import versions_line
from gpushare_cli.views.problems import problems_view, unread_view
from gpushare_cli.wording import counted, memory_text

COLUMNS = (
    TableColumn(header="policy", shrink=Shrink.FOLD),
    TableColumn(header="ready"),
    TableColumn(header="nodes", is_number=True),
    TableColumn(header="cards", is_number=True),
    TableColumn(header="units held", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="unit", shrink=Shrink.FOLD, min_width=8),
    TableColumn(header="memory held"),
    TableColumn(header="memory used", only_wide=True),
    TableColumn(header="isolation", shrink=Shrink.FOLD, min_width=9, only_filled=True),
    TableColumn(header="backend", shrink=Shrink.CROP, min_width=8),
    TableColumn(header="engine", only_wide=True),
    TableColumn(header="dialect", only_wide=True),
    TableColumn(header="reason", only_wide=True),
)
READY_STYLES = {"True": "green", "False": "red"}


def status_view(report: StatusReport, page: OutputPage) -> Iterable[RenderableType]:
    yield _answer(report)
    yield from problems_view(report.problems, page)
    yield from unread_view(report.unread)
    if report.policies:
        yield ""
        yield PageTable(COLUMNS, [_row(policy, page) for policy in report.policies], page=page)
    yield ""
    yield sentence(versions_line(report.client, report.kubernetes, report.programs), hanging=2)


def _answer(report: StatusReport) -> Text:
    if wrong := len(report.wrong):
        return heading(f"{counted(wrong, 'problem')}{_and_notes(report)}", "bold red")
    if {POLICIES, SHARE_NODES} <= {part.part for part in report.unread}:
        return heading("Whether gpushare is well cannot be known", "bold yellow")
    if report.unread:
        return heading(f"Nothing is wrong in what could be read{_and_notes(report)}", "bold yellow")
    return heading(f"gpushare is well{_and_notes(report)}", "bold green")


def _and_notes(report: StatusReport) -> str:
    return f", {counted(len(report.notes), 'note')}" if report.notes else ""


def _row(policy: PolicyState, page: OutputPage) -> list[Cell]:
    return [
        policy.name,
        Text(policy.ready, READY_STYLES.get(policy.ready, "yellow")),
        f"{policy.ready_nodes}/{policy.enabled_nodes}",
        f"{policy.healthy_cards}/{policy.total_cards}",
        _units(policy, page),
        policy.unit or "-",
        f"{memory_text(policy.allocated_memory_bytes)}/{memory_text(policy.total_memory_bytes)}",
        memory_text(policy.used_memory_bytes),
        policy.isolation,
        policy.backend or "-",
        policy.engine or "-",
        policy.dialect or "gpushare.io",
        policy.reason or "-",
    ]


def _units(policy: PolicyState, page: OutputPage) -> Text:
    bar = held_bar(held=policy.allocated_units, total=policy.total_units, page=page, width=6)
    figure = policy.units_summary or f"{policy.allocated_units}/{policy.total_units}"
    return Text.assemble(bar, f" {figure}")
