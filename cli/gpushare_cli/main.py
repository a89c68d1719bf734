"""``kubectl-gpushare``, found by kubectl as ``kubectl gpushare``."""

import asyncio
import gc
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from io import TextIOWrapper
from traceback import format_exc
from typing import Never

from gpushare_cli.arguments import WATCH_SECONDS, parse
from gpushare_cli.commands.command import Command, Session
from gpushare_cli.completion import main as completion
from gpushare_cli.errors import CannotLookError, not_reached
from gpushare_cli.login.cluster_login import cluster_login
from gpushare_cli.login.no_cluster import NO_CLUSTER
from gpushare_cli.login.plugin_process import PluginTerminal
from gpushare_cli.output.printer import Printer, printer_of
from gpushare_cli.output.progress import ProgressLine, Silence, StatusLine
from gpushare_cli.output.terminal import is_terminal
from gpushare_cli.output.watch import pages_of, watch
from gpushare_cli.repetition import repeat
from gpushare_cli.report import CommandReport, ExitStatus
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import NoCredentialsError
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.process.clock import utc_now
from gpushare_core.process.log import configure_logging
from gpushare_core.process.version import VERSION
from gpushare_core.text.printable import printable, printable_lines

COLLECTED_AFTER = (100_000, 50, 100)
"""Objects, and rounds, until Python looks for garbage in cycles. There is hardly any: with its own thresholds
a report of 40,000 pods took almost twice the processor."""
MISTAKE = f"kubectl gpushare {VERSION} has made a mistake, and found nothing out: please report these lines"
COMPLETE = "__complete"
"""What scripts for shells call, with the words of a command line; every program of cobra's has it."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the program and returns its exit status, an ``ExitStatus``."""
    words = sys.argv[1:] if arguments is None else arguments
    if [*words[:1]] == [COMPLETE]:
        return completion.main(words[1:])
    options = parse(words)
    gc.set_threshold(*COLLECTED_AFTER)
    configure_logging("warning")
    _print_any_text()
    try:
        if not options.every:
            return _once(options)
        return repeat(lambda: _once(options), every=options.every, prints_time=options.output.is_for_people)
    except BrokenPipeError:
        _close_output()
        return ExitStatus.READER_GONE
    except Exception:
        sys.stderr.write(f"{printable_lines(format_exc())}{MISTAKE}\n")
        return ExitStatus.CANNOT_LOOK


def _once(options: Namespace) -> int:
    try:
        return asyncio.run(_run(options.command, options))
    except (CannotLookError, NoCredentialsError, ApiError) as error:
        return _cannot_look(str(error))
    except UnreachableError as error:
        return _cannot_look(not_reached(error))
    except (KeyboardInterrupt, asyncio.CancelledError):
        return ExitStatus.INTERRUPTED


def _cannot_look(why: str) -> int:
    sys.stderr.write(f"kubectl gpushare: {printable(why)}\n")
    return ExitStatus.CANNOT_LOOK


def _print_any_text() -> None:
    """What an encoding lacks is printed as ``\\u2013``."""
    for file in (sys.stdout, sys.stderr):
        if isinstance(file, TextIOWrapper):
            file.reconfigure(errors="backslashreplace")


async def _run(command: Command, options: Namespace) -> int:
    _end_by_signals()
    printer = printer_of(sys.stdout, options, os.environ)
    progress = _progress(printer)
    login = NO_CLUSTER
    if command.needs_cluster:
        login = cluster_login(options, os.environ, terminal=PluginTerminal.of_process(progress.done))
    async with KubeClient(login.credentials, timeout=login.timeout) as client:
        session = Session(
            client=client,
            namespace=login.namespace,
            all_namespaces=options.all_namespaces,
            now=utc_now,
            progress=progress,
            server=login.credentials.server,
            announce=lambda report: _announce(report, command, printer, progress),
        )
        if _is_live(command, options, printer):
            options.watch = options.watch or WATCH_SECONDS
        if options.watch:
            await _watch(command, options, session, printer)
        try:
            report = await command.find(session, options)
        finally:
            progress.done()
        printer.print(report, command.view)
        return report.exit_status


def _announce(report: CommandReport, command: Command, printer: Printer, progress: ProgressLine) -> None:
    progress.done()
    printer.print(report, command.view)


def _is_live(command: Command, options: Namespace, printer: Printer) -> bool:
    is_shown = printer.is_for_people and is_terminal(sys.stdout, os.environ)
    return command.is_live and is_shown and not options.once


async def _watch(command: Command, options: Namespace, session: Session, printer: Printer) -> Never:
    """Asks until a signal comes, or nobody reads any more."""
    title = f"Every {options.watch:g}s: kubectl gpushare {command.name}"
    silent = replace(session, progress=Silence())
    with pages_of(printer, sys.stderr, title=title, now=session.now, environment=os.environ) as pages:
        await watch(
            lambda: command.find(silent, options),
            command.view,
            printer=printer,
            pages=pages,
            seconds=options.watch,
        )


def _end_by_signals() -> None:
    """They end what we have begun as well, such as a program that logs in."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGHUP):
        if number is signal.SIGTERM or signal.getsignal(number) is not signal.SIG_IGN:  # as by nohup
            with suppress(RuntimeError):  # only the main thread gets signals
                asyncio.get_running_loop().add_signal_handler(number, task.cancel)


def _progress(printer: Printer) -> ProgressLine:
    """On a terminal alone: whoever reads a pipe wants nothing but the answer."""
    if is_terminal(sys.stderr, os.environ) and is_terminal(sys.stdout, os.environ):
        return StatusLine(sys.stderr, printer.page.width)
    return Silence()


def _close_output() -> None:
    """Nobody reads any more: what is left unwritten at the end of the process is nobody's affair either."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
