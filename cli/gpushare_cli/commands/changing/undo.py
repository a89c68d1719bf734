"""``undo``: deletes policies, waits, and proves that nothing is left."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.commands.time_argument import seconds_of
from gpushare_cli.decide.undo.report import UndoReport
from gpushare_cli.output.consent import Consent
from gpushare_cli.output.page import OutputPage

TIMEOUT_SECONDS = 600
"""Twice what kubelets take to forget a plugin that has gone."""

DESCRIPTION = """\
Deletes all policies, or those you name, and waits until the operator has undone them: kube-scheduler has
its former configuration; extender, plugins, GPUShareNodes and labels are gone. Running pods keep their
cards. Then it checks whether anything is left, like "kubectl gpushare audit --residue".

First it shows each step, and asks. --dry-run only shows the steps. The installation stays: the operator,
its rights, and the CustomResourceDefinitions.

Pods with isolation Hook need files on their nodes, so it waits until these pods have ended. With the
annotation gpushare.io/leave-isolation-files=true on a policy it does not wait, and the files stay.

The operator goes on by itself once the policies are deleted: Ctrl-C and the timeout end only the waiting.

Exit status: 0 nothing is left, 1 something is left or the answer was no, 2 it could not look, 130 Ctrl-C."""


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("policies", nargs="*", metavar="POLICY", help="only these; default: all")
    parser.add_argument("--dry-run", action="store_true", help="show the steps, and change nothing")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask; needed without a terminal")
    parser.add_argument(
        "--timeout",
        type=seconds_of,
        default=TIMEOUT_SECONDS,
        metavar="TIME",
        help="how long to wait, such as 90s or 10m; kubelets need up to five minutes to forget"
        " a plugin (default: 10m)",
    )


async def _find(session: Session, options: Namespace) -> UndoReport:
    from gpushare_cli.changes.undo import Undo
    from gpushare_cli.decide.undo.report import UndoPlan
    from gpushare_cli.views.undo import plan_view

    async def agrees(plan: UndoPlan) -> bool:
        session.progress.done()
        return await consent.agrees(lambda page: plan_view(plan, page))

    undo = Undo(client=session.client, progress=session.progress, timeout=options.timeout)
    if options.dry_run:
        return await undo.dry_run(options.policies)
    consent = Consent.of(options)
    consent.require_somebody()
    return await undo.run(options.policies, agrees)


def _view(report: UndoReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.undo import undo_view

    return undo_view(report, page)


UNDO_COMMAND = Command(
    name="undo",
    summary="delete the policies, wait until everything is restored, and check that",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare undo --dry-run",
        "kubectl gpushare undo",
        "kubectl gpushare undo team-a --yes --timeout 5m",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
    can_watch=False,
)
