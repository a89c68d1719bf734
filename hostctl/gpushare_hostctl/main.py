"""Entry point: ``gpushare-hostctl keys | install | restore | status | render | dedicated |
log-folder``."""

import argparse
import contextlib
import errno
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpushare_core.process.clock import utc_now
from gpushare_core.process.log import configure_logging, log_start
from gpushare_core.process.version import VERSION
from gpushare_core.text.printable import printable_lines
from gpushare_hostctl import arguments, dedicated, install, log_folder, mutual_tls, report, restore
from gpushare_hostctl.decide.run.snapshot import HostPaths
from gpushare_hostctl.decide.run.status import read_status
from gpushare_hostctl.decide.scheduler.rendering import Question, render
from gpushare_hostctl.decide.scheduler.scheduler_config import DedicatedProfile
from gpushare_hostctl.decide.scheduler.scheduler_flags import SchedulerFlags
from gpushare_hostctl.errors import ExitCode, HostctlError, RolledBackError
from gpushare_hostctl.host.extender_probe import HttpsExtenderProber
from gpushare_hostctl.host.files import HostFiles
from gpushare_hostctl.host.health_probe import HttpsProber, Prober
from gpushare_hostctl.host.node import ControlPlaneNode
from gpushare_hostctl.host.scheduler_waiter import SchedulerWaiter
from gpushare_hostctl.mutual_tls import MutualTls
from gpushare_hostctl.report import Report

_LOG = logging.getLogger(__name__)


def main(command_line: Sequence[str] | None = None, *, prober: Prober | None = None) -> int:
    """Returns an ExitCode."""
    options = arguments.parse(command_line)
    configure_logging(options.log_level)
    if options.command == "render":
        return _render(options)
    log_start("gpushare-hostctl", VERSION)
    if options.command == "dedicated":
        return _dedicated(options)
    if options.command == "log-folder":
        log_folder.prepare(options.folder, group=options.group)
        return ExitCode.OK
    with _noting_signals() as stopped:
        node = _node(options, prober or HttpsProber(), is_stopped=stopped.is_set)
        return _print_status(node) if options.command == "status" else _run_and_report(node, options)


@contextlib.contextmanager
def _noting_signals() -> Iterator[threading.Event]:
    """Notes SIGTERM and SIGINT instead of ending at once: a change is finished or taken back.

    The first process of a container would otherwise not get SIGTERM at all.
    """
    stopped = threading.Event()
    numbers = (signal.SIGTERM, signal.SIGINT)
    earlier = [signal.signal(number, lambda *_: stopped.set()) for number in numbers]
    try:
        yield stopped
    finally:
        for number, handler in zip(numbers, earlier, strict=True):
            signal.signal(number, handler)


def _node(options: argparse.Namespace, prober: Prober, *, is_stopped: Callable[[], bool]) -> ControlPlaneNode:
    return ControlPlaneNode(
        files=HostFiles(options.root),
        paths=HostPaths(manifest=options.manifest, folder=options.folder),
        waiter=SchedulerWaiter(
            prober=prober,
            clock=time.monotonic,
            sleep=time.sleep,
            timeout=options.timeout,
            is_stopped=is_stopped,
        ),
    )


def _run_and_report(node: ControlPlaneNode, options: argparse.Namespace) -> ExitCode:
    before = _manifest_checksum(node)
    final = replace(_run(node, options), sha256_before=before, sha256_after=_manifest_checksum(node))
    final.publish(options.termination_log)
    return final.exit_code


def _run(node: ControlPlaneNode, options: argparse.Namespace) -> Report:
    try:
        with node.lock():
            return _run_command(node, options)
    except RolledBackError as error:
        return Report("RolledBack", str(error), error.exit_code, inputs=error.inputs)
    except (HostctlError, OSError) as error:
        _LOG.error("%s", error)
        return Report("Failed", str(error), _exit_code(error))
    except Exception as error:
        # Whatever lies on the host: the operator gets an answer it can show.
        _LOG.exception("unexpected error")
        message = f"unexpected {error!r}; see the log of this Job"
        return Report("Failed", message, ExitCode.NEEDS_PERSON)


def _run_command(node: ControlPlaneNode, options: argparse.Namespace) -> Report:
    if options.command == "install":
        engine = arguments.engine(options)
        return install.run(node, engine, _mutual_tls(options), rolled_back_inputs=options.rolled_back_inputs)
    if options.command == "keys":
        return mutual_tls.run(node, _mutual_tls(options))
    return restore.run(node)


def _mutual_tls(options: argparse.Namespace) -> MutualTls:
    return MutualTls(now=utc_now, group=options.extender_group, prober=HttpsExtenderProber())


def _exit_code(error: HostctlError | OSError) -> ExitCode:
    if isinstance(error, HostctlError):
        return error.exit_code
    # What may not be written, or lies on a read-only file system, stays so until somebody changes it.
    is_lasting = isinstance(error, PermissionError) or error.errno == errno.EROFS
    return ExitCode.NEEDS_PERSON if is_lasting else ExitCode.RETRY


def _manifest_checksum(node: ControlPlaneNode) -> str | None:
    try:
        return node.manifest_checksum()
    except (HostctlError, OSError):
        return None


def _render(options: argparse.Namespace) -> ExitCode:
    question = Question(
        extender=arguments.extender_entry(options),
        folder=options.folder,
        target=options.target,
        flags=SchedulerFlags(tuple(options.flags)),
        version=options.kubernetes_version,
    )
    try:
        config = options.config.read_bytes() if options.config else None
        rendering = render(replace(question, config=config))
    except (HostctlError, OSError) as error:
        _LOG.error("%s", error)
        return ExitCode.NEEDS_PERSON
    sys.stdout.buffer.write(rendering.configuration)
    sys.stdout.flush()
    sys.stderr.write(printable_lines(rendering.instructions))
    return ExitCode.OK


def _dedicated(options: argparse.Namespace) -> ExitCode:
    profile = DedicatedProfile(options.scheduler_name, options.lease_namespace)
    try:
        dedicated.run(options.folder, profile, arguments.engine(options), now=utc_now())
    except OSError as error:
        _LOG.error("cannot write what kube-scheduler of this pod needs: %s", error)
        return ExitCode.RETRY
    return ExitCode.OK


def _print_status(node: ControlPlaneNode) -> ExitCode:
    try:
        snapshot = node.snapshot()
        status = read_status(snapshot)
    except (HostctlError, OSError) as error:
        print(report.encode_unknown_status(str(error), sha256=_manifest_checksum(node)))
        return _exit_code(error)
    print(report.encode_status(status, snapshot))
    return ExitCode.OK


if __name__ == "__main__":
    sys.exit(main())
