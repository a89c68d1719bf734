"""``status``: whether all is well, and what to do where it is not."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.status import StatusReport
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Says whether anything is wrong, the worst first, with the command that helps. Then it shows the policies with
their nodes, cards and units, and the versions that run. kubectl gpushare without a command does the same.

A problem is an error (pods get no units, or cards are given away wrongly), a warning (something is not as a
policy asks), or a note (a cordoned card, a waiting pod). Problems of many nodes share one line with examples;
-o wide shows all of them, -o json all names. To compare the records of who holds what use kubectl gpushare
audit.

If you may not list the pods of all namespaces, it lists those of the context's namespace, or of -n.

Exit status: 0 no errors or warnings; 1 errors or warnings; 2 it could not look, or it found nothing wrong but
could not read everything."""


def _add_arguments(_parser: ArgumentParser) -> None:
    """It has none of its own."""


async def _find(session: Session, _options: Namespace) -> StatusReport:
    from gpushare_cli.decide.status import status_report
    from gpushare_cli.gather.status_facts import read_status_facts

    return status_report(
        await read_status_facts(
            session.client, now=session.now(), progress=session.progress, scope=session.pod_scope()
        )
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
