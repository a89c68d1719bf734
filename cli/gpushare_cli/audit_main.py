"""Runs ``audit``, once or again and again."""

import asyncio
import random
import signal
import sys
import threading
from argparse import Namespace

from gpushare_cli.audit import audit, rendered
from gpushare_cli.audit_arguments import complete
from gpushare_cli.decide.report import AuditStatus
from gpushare_cli.errors import CannotLookError
from gpushare_cli.residue import find_residue
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError, find_credentials
from gpushare_core.process.clock import utc_now
from gpushare_core.text.printable import printable


def run_audit(options: Namespace) -> int:
    """Runs ``audit`` and returns its exit status, an ``AuditStatus``."""
    complete(options)
    if options.host_folder and not options.node:
        return _refuse("--host-folder needs --node, the name of the node that this runs on")
    return _repeat(options) if options.every else _once(options)


def _once(options: Namespace) -> int:
    try:
        text, code = asyncio.run(_run(options))
    except (CannotLookError, NoCredentialsError) as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return AuditStatus.CANNOT_LOOK
    sys.stdout.write(f"{text}\n")
    return code


def _repeat(options: Namespace) -> int:
    """Audits again and again until a signal comes, and prints the time before each audit. Goes on after one
    that could not read something. Returns the last exit status."""
    stopped = threading.Event()
    code: int = AuditStatus.NONE
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.is_set():
        sys.stdout.write(f"{rfc3339(utc_now())}\n")
        code = _once(options)
        sys.stdout.flush()
        stopped.wait(pause(options.every))
    return code


def pause(every: float) -> float:
    """Returns seconds, not always the same: thousands of audits that were started together spread out."""
    return every * random.uniform(0.75, 1.25)  # noqa: S311  no secret


async def _run(options: Namespace) -> tuple[str, AuditStatus]:
    async with KubeClient(find_credentials(options.kubeconfig)) as client:
        if options.residue:
            return await find_residue(client, options)
        report = await audit(client, options)
        return rendered(report, options.output), report.exit_code


def _refuse(message: str) -> AuditStatus:
    sys.stderr.write(f"kubectl gpushare: {printable(message)}\n")
    return AuditStatus.CANNOT_LOOK
