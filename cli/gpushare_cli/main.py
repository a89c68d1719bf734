"""``kubectl-gpushare``, found by kubectl as ``kubectl gpushare``."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from gpushare_cli.arguments import parse
from gpushare_cli.commands.command import Command, Session
from gpushare_cli.errors import CannotLookError
from gpushare_cli.login.cluster_login import cluster_login
from gpushare_cli.output.printer import printer_of
from gpushare_cli.output.progress import Silence
from gpushare_cli.repetition import repeat
from gpushare_cli.report import ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.process.clock import utc_now
from gpushare_core.process.log import configure_logging
from gpushare_core.text.printable import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status, an ``ExitStatus``."""
    options = parse(arguments)
    configure_logging("warning")
    return repeat(lambda: _once(options), every=options.every) if options.every else _once(options)


def _once(options: Namespace) -> int:
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
