"""``version``: which versions run, and whether they fit together."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.version import VersionReport
from gpushare_cli.output.page import OutputPage

DESCRIPTION = """\
Shows which versions run, and which of them do not work together. Any program may be one release older or
newer than the others. gpushare needs Kubernetes 1.32 or newer.

Exit status: 0 all work together, 1 some do not, 2 it could not look."""


def _add_arguments(_parser: ArgumentParser) -> None:
    """It has none of its own."""


async def _find(session: Session, _options: Namespace) -> VersionReport:
    from gpushare_cli.decide.problems.problem import grouped
    from gpushare_cli.decide.problems.skew import skew_problems
    from gpushare_cli.decide.version import program_versions
    from gpushare_cli.gather.status_facts import read_version_facts

    facts = await read_version_facts(session.client, now=session.now(), progress=session.progress)
    return VersionReport(
        client=facts.client_version,
        kubernetes=facts.kubernetes,
        programs=program_versions(facts),
        problems=tuple(grouped(skew_problems(facts))),
        unread=tuple(facts.unread),
    )


def _view(report: VersionReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.installation.version import version_view

    return version_view(report, page)


VERSION_COMMAND = Command(
    name="version",
    summary="show the versions of client, Kubernetes, and the programs in the cluster",
    description=DESCRIPTION,
    examples=("kubectl gpushare version", "kubectl gpushare version -o json"),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
)
