"""What people see of a preflight: the answer, a row for each question, then what to do."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.decide.preflight.answer import PreflightAnswer, Verdict
from gpushare_cli.decide.preflight.report import PreflightReport
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell, PageTable, Shrink, TableColumn
from gpushare_cli.views.problems import unread_view
from gpushare_cli.wording import counted
from gpushare_core.text.printable import printable

COLUMNS = (
    TableColumn(header="question"),
    TableColumn(header="answer"),
    TableColumn(header="found", shrink=Shrink.FOLD, min_width=30),
    TableColumn(header="nodes", shrink=Shrink.FOLD, only_wide=True, only_filled=True),
)
STYLES = {
    Verdict.OK: "green",
    Verdict.NOTE: "bold",
    Verdict.MISSING: "bold red",
    Verdict.UNKNOWN: "yellow",
}
ORDER = (Verdict.MISSING, Verdict.UNKNOWN, Verdict.NOTE, Verdict.OK)


def preflight_view(report: PreflightReport, page: OutputPage) -> Iterable[RenderableType]:
    yield _answer(report)
    yield ""
    yield PageTable(COLUMNS, [_row(answer) for answer in report.answers], page=page)
    to_do = [answer for answer in report.answers if answer.to_do]
    if to_do or report.unread:
        yield ""
    yield from unread_view(report.unread)
    for answer in sorted(to_do, key=lambda answer: ORDER.index(answer.verdict)):
        yield from _to_do(answer)


def _answer(report: PreflightReport) -> Text:
    used = "gpushare is installed, and" if report.is_installed else "gpushare can be installed:"
    notes = _counts(report)
    if missing := len(report.of(Verdict.MISSING)):
        return heading(f"{counted(missing, 'thing')} missing{notes}", "bold red")
    if len(report.of(Verdict.UNKNOWN)) == len(report.answers):
        return heading("Nothing could be read", "bold yellow")
    if report.unread:
        return heading(f"Nothing is missing in what could be read{notes}", "bold yellow")
    return heading(f"{used} nothing is missing{notes}", "bold green")


def _counts(report: PreflightReport) -> str:
    notes, unknown = len(report.of(Verdict.NOTE)), len(report.of(Verdict.UNKNOWN))
    parts = (counted(notes, "note") if notes else "", f"{unknown} unknown" if unknown else "")
    return "".join(f", {part}" for part in parts if part)


def _row(answer: PreflightAnswer) -> list[Cell]:
    shown = Text(answer.verdict, STYLES[answer.verdict])
    return [answer.question, shown, answer.found, " ".join(answer.nodes)]


def _to_do(answer: PreflightAnswer) -> Iterable[RenderableType]:
    said = Text.assemble((f"{answer.question}: ", STYLES[answer.verdict]), printable(answer.to_do))
    yield sentence(said, hanging=2)
    if answer.command:
        yield to_type(answer.command, indent=4)
