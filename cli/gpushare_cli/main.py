"""``kubectl-gpushare``, found by kubectl as ``kubectl gpushare``."""

import asyncio
import sys
from argparse import Namespace
from collections.abc import Sequence

from gpushare_cli.arguments import parse
from gpushare_cli.audit import audit, rendered
from gpushare_cli.decide.report import ExitCode
from gpushare_cli.gather.errors import CannotLookError
from gpushare_cli.residue import find_residue
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError, find_credentials
from gpushare_core.log import configure_logging
from gpushare_core.printable import printable


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status, as ``ExitCode`` names it."""
    options = parse(arguments)
    configure_logging("warning")
    if options.host_folder and not options.node:
        return _refuse("--host-folder needs --node, the name of the node that this runs on")
    try:
        text, code = asyncio.run(_run(options))
    except (CannotLookError, NoCredentialsError) as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return ExitCode.CANNOT_LOOK
    sys.stdout.write(f"{text}\n")
    return code


async def _run(options: Namespace) -> tuple[str, ExitCode]:
    async with KubeClient(find_credentials(options.kubeconfig)) as client:
        if options.residue:
            return await find_residue(client, options)
        report = await audit(client, options)
        return rendered(report, options.output), report.exit_code


def _refuse(message: str) -> ExitCode:
    sys.stderr.write(f"kubectl gpushare: {printable(message)}\n")
    return ExitCode.CANNOT_LOOK
