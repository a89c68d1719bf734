"""``kubectl-gpushare``, found by kubectl as ``kubectl gpushare``."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from gpushare_cli.arguments import parse
from gpushare_cli.audit_main import run_audit
from gpushare_cli.commands.command import Command, Session
from gpushare_cli.completion import main as completion
from gpushare_cli.errors import CannotLookError
from gpushare_cli.login.cluster_login import cluster_login
from gpushare_cli.output.printer import printer_of
from gpushare_cli.output.progress import Silence
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.process.clock import utc_now
from gpushare_core.process.log import configure_logging
from gpushare_core.text.printable import printable

COMPLETE = "__complete"
"""What scripts for shells call, with the words of a command line; every program of cobra's has it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status, an ``ExitStatus``."""
    words = sys.argv[1:] if arguments is None else arguments
    if [*words[:1]] == [COMPLETE]:
        return completion.main(words[1:])
    options = parse(words)
    configure_logging("warning")
    if options.command is None:
        return run_audit(options)
    try:
        return asyncio.run(_run(options.command, options))
    except (CannotLookError, NoCredentialsError, ApiError, UnreachableError) as error:
        sys.stderr.write(f"kubectl gpushare: {printable(str(error))}\n")
        return ExitStatus.CANNOT_LOOK
    except BrokenPipeError:
        return ExitStatus.CANNOT_LOOK
    except KeyboardInterrupt:
        return ExitStatus.INTERRUPTED


async def _run(command: Command, options: Namespace) -> int:
    """Repeats with ``--watch`` until it is interrupted."""
    printer = printer_of(sys.stdout, options, os.environ)
    login = cluster_login(options, os.environ)
    async with KubeClient(login.credentials, timeout=login.timeout) as client:
        session = Session(
            client=client,
            namespace=login.namespace,
            all_namespaces=options.all_namespaces,
            now=utc_now,
            progress=Silence(),
        )
        while True:
            report = await command.find(session, options)
            printer.print(report, command.view)
            if not options.watch:
                return report.exit_status
            await asyncio.sleep(options.watch)
