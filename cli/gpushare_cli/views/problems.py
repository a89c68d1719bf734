"""What people see of problems: what is wrong, worst first, and what to type next."""

from collections.abc import Iterable, Sequence

from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.decide.problems.facts import UnreadPart
from gpushare_cli.decide.problems.problem import Severity, StatusProblem
from gpushare_cli.output.lines import sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.wording import counted, listed
from gpushare_core.text.printable import printable

MAX_PROBLEMS = 6
"""On a page that is not wide."""
MAX_DETAIL = 240
"""Bytes of what the cluster says of a problem, on a page that is not wide."""
FORBIDDEN = " is forbidden: "
PARTS = "; "
"""Between the parts of what the cluster says."""
STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "bold"}
PLURALS = {"policy": "policies"}


def problems_view(problems: Sequence[StatusProblem], page: OutputPage) -> Iterable[RenderableType]:
    shown = problems if page.is_wide else problems[:MAX_PROBLEMS]
    for problem in shown:
        yield from problem_view(problem, page)
    if len(problems) > len(shown):
        yield f"... and {len(problems) - len(shown)} more:"
        yield to_type("kubectl gpushare status -o wide")


def problem_view(problem: StatusProblem, page: OutputPage) -> Iterable[RenderableType]:
    """A command of several lines begins them at the margin: a shell ends its document only there."""
    said = ": ".join(filter(None, (subject_text(problem), problem.sentence)))
    said_of = Text.assemble((f"{problem.severity}: ", STYLES[problem.severity]), printable(said))
    yield sentence(said_of, hanging=2)
    if problem.detail:
        yield sentence(_detail(problem.detail, page), indent=2)
    lines = problem.command.splitlines()
    for line in lines:
        yield to_type(line, indent=4 if len(lines) == 1 else 0)


def _detail(detail: str, page: OutputPage) -> str:
    """Returns whole parts of what is a list, as far as there is room."""
    if page.is_wide or len(detail.encode()) <= MAX_DETAIL:
        return printable(detail)
    first, *others = detail.split(PARTS)
    shown = printable(first, max_bytes=MAX_DETAIL)
    return f"{shown}, and {len(others)} more: -o wide shows all" if others else shown


def subject_text(problem: StatusProblem) -> str:
    if not problem.names:
        return ""
    if len(problem.names) == 1:
        return f"{problem.kind} {problem.names[0]}"
    plural = PLURALS.get(problem.kind, "")
    return f"{counted(len(problem.names), problem.kind, plural)} ({listed(problem.names)})"


def unread_view(unread: Sequence[UnreadPart]) -> Iterable[RenderableType]:
    """What rights are missing for is one sentence: the API server says the same of each."""
    forbidden = [part.part for part in unread if FORBIDDEN in part.reason]
    if len(forbidden) > 1:
        names = listed(forbidden, len(forbidden))
        yield sentence(f"Unknown: you may not read {names}; -o json has what the API server says.")
    for part in unread:
        if len(forbidden) < 2 or FORBIDDEN not in part.reason:
            yield sentence(f"Unknown: {part.part} could not be read: {part.reason}")
