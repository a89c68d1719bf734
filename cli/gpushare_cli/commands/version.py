"""``version``: which versions run."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.version import VersionReport
from gpushare_cli.output.page import OutputPage
from gpushare_core.kube.paths import SERVER_VERSION
from gpushare_core.process.version import VERSION


def _add_arguments(_parser: ArgumentParser) -> None:
    """It has none of its own."""


async def _find(session: Session, _options: Namespace) -> VersionReport:
    server = await session.client.get(SERVER_VERSION)
    return VersionReport(client=VERSION, server=str(server.get("gitVersion", "")))


def _view(report: VersionReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.version import version_view

    return version_view(report, page)


VERSION_COMMAND = Command(
    name="version",
    summary="show the versions of client, operator, plugins, extender and Kubernetes",
    description="Shows which versions run, and which of them do not fit together.",
    examples=("kubectl gpushare version",),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
)
