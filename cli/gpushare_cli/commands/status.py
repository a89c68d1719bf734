"""``status``: whether all is well, and what to do where it is not."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.status import StatusReport
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Answers whether all is well: what is wrong, worst first, and what to type about it; then the policies with
their nodes, cards and units, and the versions that run. It is what kubectl gpushare does without a command.

A problem is an error (pods get no units, or cards are given away wrongly), a warning (something is not as it
was asked for), or a note (a cordoned card, a pod that waits). Problems of many nodes are one line with
examples; -o wide shows all at full length, -o json all names. It does not compare the records of who holds
what: kubectl gpushare audit does.

Exit status: 0 well, notes or none; 1 errors or warnings; 2 it could not look, or nothing is wrong in what it
could read while something could not be read."""


def _add_arguments(_parser: ArgumentParser) -> None:
    """It has none of its own."""


async def _find(session: Session, _options: Namespace) -> StatusReport:
    from gpushare_cli.decide.status import status_report
    from gpushare_cli.gather.status_facts import read_status_facts

    return status_report(
        await read_status_facts(session.client, now=session.now(), progress=session.progress)
    )


def _view(report: StatusReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.status import status_view

    return status_view(report, page)


STATUS_COMMAND = Command(
    name="status",
    summary="say whether all is well, what is wrong, and what to do about it",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare",
        "kubectl gpushare status --watch",
        "kubectl gpushare -o json --context production",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
)
