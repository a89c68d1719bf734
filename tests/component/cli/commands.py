"""Runs commands as the program does, and prints what they report."""

import io
from datetime import UTC, datetime

from gpushare_cli.arguments import parse
from gpushare_cli.commands.command import Session
from gpushare_cli.output.printer import printer_of
from gpushare_cli.output.progress import ProgressLine, Silence
from gpushare_cli.report import CommandReport
from gpushare_core.kube.client import KubeClient

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


async def run_command(
    client: KubeClient, *arguments: str, progress: ProgressLine | None = None, own: str = "default"
) -> CommandReport:
    """``own``: namespace of the kubeconfig's context."""
    options = parse(arguments)
    session = Session(
        client=client,
        namespace=options.namespace or own,
        all_namespaces=options.all_namespaces,
        now=lambda: NOW,
        progress=progress or Silence(),
    )
    report: CommandReport = await options.command.find(session, options)
    return report


def printed(report: CommandReport, *arguments: str) -> str:
    """Returns what the command with these arguments prints of the report, into a pipe."""
    options, file = parse(arguments), io.StringIO()
    printer_of(file, options, {}).print(report, options.command.view)
    return file.getvalue()
