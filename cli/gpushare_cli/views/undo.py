"""What people see of ``undo``: before it, and after it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from gpushare_cli.decide.residue import ResidueReport
from gpushare_cli.decide.undo.plan import LEAVE_FILES, LET_GO, OPERATOR
from gpushare_cli.decide.undo.report import UndoOutcome, UndoPlan, UndoReport, UndoStep
from gpushare_cli.output.lines import heading, sentence, to_type
from gpushare_cli.output.page import OutputPage
from gpushare_cli.views.audit import residue_view
from gpushare_cli.wording import counted, listed
from gpushare_core.api.share_node import ISOLATION_FOLDER
from gpushare_core.text.printable import printable

INDENT = 4
SHOWN_NAMES = 6
"""In a step; -o wide and -o json have all."""
ISOLATION_FILES = "isolation files"
"""In what a policy says that waits for pods which need some."""
GOES_ON = "The operator goes on by itself; run this again to wait longer."


def undo_view(report: UndoReport, page: OutputPage) -> Iterator[RenderableType]:
    if report.outcome is UndoOutcome.DRY_RUN:
        yield from plan_view(report.plan, page)
        if report.plan.policies:
            yield ""
            yield sentence("Nothing was changed: this is a dry run.")
    else:
        yield from _OUTCOMES[report.outcome](report)
        if report.residue is not None:
            yield from residue_view(ResidueReport(residue=report.residue, looked=report.looked), page)


def plan_view(plan: UndoPlan, page: OutputPage) -> Iterator[RenderableType]:
    """What will be done, step by step."""
    if not plan.policies:
        yield sentence("There is no policy, and nothing to undo.")
        return
    yield heading(f"What deleting {_policies(plan.policies)} does, in this order:")
    for number, step in enumerate(plan.steps, 1):
        yield ListItem(f"{number}.", _says(step, page))
    yield ""
    yield heading("What stays:")
    for stays in _stays(plan, page):
        yield ListItem(_bullet(page), stays)
    if plan.warnings:
        yield ""
        yield heading("What is in the way:")
        for warning in plan.warnings:
            yield ListItem(_bullet(page), warning.says)
            if warning.command:
                yield to_type(warning.command, indent=INDENT)


def _says(step: UndoStep, page: OutputPage) -> str:
    return step.says.format(objects=_names(step.objects, page))


def _stays(plan: UndoPlan, page: OutputPage) -> Iterator[str]:
    if plan.pods:
        pods = [f"{pod.namespace}/{pod.name}" for pod in plan.pods]
        verb = (
            "keeps running, on the cards that it has"
            if len(pods) == 1
            else ("keep running, on the cards that they have")
        )
        yield f"{counted(len(pods), 'pod')} {verb}: {_names(pods, page)}."
    if not plan.staying:
        yield "Pods that ask for gpushare's resources and do not run yet stay Pending."
    else:
        yield f"{_policies(plan.staying)[0].upper()}{_policies(plan.staying)[1:]}, with what they need."
    if plan.needed_backend:
        yield f"The schedulers stay connected (backend {plan.needed_backend}): these policies need that."
    yield from _files_left(plan, len(plan.nodes_with_files) if page.is_wide else SHOWN_NAMES)
    yield "What was installed: the operator, its rights, the CustomResourceDefinitions."


def _files_left(plan: UndoPlan, shown: int) -> Iterator[str]:
    if plan.nodes_with_files:
        nodes = listed(plan.nodes_with_files, shown)
        yield (
            f"Isolation files on {nodes}, in {ISOLATION_FOLDER}: remove that folder when the pods have ended"
            " that were given some."
        )


def _undone(report: UndoReport) -> Iterator[RenderableType]:
    yield sentence(f"{_gone(report)} after {report.seconds:.0f} s.")
    for stays in _files_left(report.plan, SHOWN_NAMES):
        yield sentence(f"What stays: {stays}")


def _gone(report: UndoReport) -> str:
    policies = _policies(report.plan.policies)
    verb = "is" if len(report.plan.policies) == 1 else "are"
    return f"{policies[0].upper()}{policies[1:]} {verb} gone"


def _timed_out(report: UndoReport) -> Iterator[RenderableType]:
    yield heading(f"Not all is undone after {report.seconds:.0f} s.")
    yield from _waiting(report)
    first = next(iter(report.waiting_for), "POLICY")
    for name, message in report.waiting_for.items():
        if ISOLATION_FILES in message:
            yield sentence("To wait no longer for pods, and leave their isolation files on the nodes:")
            yield to_type(LEAVE_FILES.format(policies=name))
    yield sentence("See that the operator runs, which undoes it:")
    yield to_type(OPERATOR)
    yield sentence("Only where it waits for a control-plane node that is lost for ever, let that go:")
    yield to_type(LET_GO.format(policy=first, node="NODE"))
    yield sentence(GOES_ON)


def _interrupted(report: UndoReport) -> Iterator[RenderableType]:
    if report.waiting_for:
        yield heading("You ended the waiting, not the undoing.")
        yield from _waiting(report)
        yield sentence(GOES_ON)
    else:
        yield sentence(f"{_gone(report)}.")
        yield sentence("Whether anything is left, kubectl gpushare audit --residue says.")


def _waiting(report: UndoReport) -> Iterator[RenderableType]:
    for name, message in report.waiting_for.items():
        yield ListItem("-", f"Policy {name}: {message}")


_OUTCOMES = {
    UndoOutcome.DECLINED: lambda _: [sentence("Nothing was changed.")],
    UndoOutcome.NOTHING_TO_UNDO: lambda _: [sentence("There is no policy, and nothing to undo.")],
    UndoOutcome.UNDONE: _undone,
    UndoOutcome.TIMED_OUT: _timed_out,
    UndoOutcome.INTERRUPTED: _interrupted,
}


def _policies(names: Sequence[str]) -> str:
    return f"{'policy' if len(names) == 1 else 'policies'} {', '.join(names)}"


def _names(names: Sequence[str], page: OutputPage) -> str:
    return listed(names, len(names) if page.is_wide else SHOWN_NAMES)


def _bullet(page: OutputPage) -> str:
    return "-" if page.is_ascii else "\u2022"


@dataclass(frozen=True, slots=True)
class ListItem:
    """A paragraph whose lines begin below its first word, without blanks at their ends."""

    sign: str
    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        lines = Text(printable(self.text)).wrap(console, options.max_width - INDENT, overflow="fold")
        for number, line in enumerate(lines):
            before = f"{self.sign:>{INDENT - 1}} " if number == 0 else " " * INDENT
            yield Text(before + line.plain.rstrip())
