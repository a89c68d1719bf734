"""Entry point: ``gpushare-hostctl install | restore | status``."""

import argparse
import json
import logging
import re
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gpushare_core.log import configure_logging
from gpushare_core.version import VERSION
from gpushare_hostctl import install, restore
from gpushare_hostctl.decide import plan
from gpushare_hostctl.decide.configuration import Extender
from gpushare_hostctl.decide.plan import Location
from gpushare_hostctl.errors import ExitCode, HostctlError
from gpushare_hostctl.host.files import Host
from gpushare_hostctl.host.node import Node, Outcome
from gpushare_hostctl.host.probe import HttpsProber, Prober, Waiter
from gpushare_hostctl.report import Report

_LOG = logging.getLogger(__name__)

_MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
_FOLDER = "/etc/kubernetes/gpushare"
_TERMINATION_LOG = Path("/dev/termination-log")
_DURATION = re.compile(r"(\d+(\.\d+)?(ms|s|m|h))+")
_RESOURCE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?")


def main(arguments: Sequence[str] | None = None, *, prober: Prober | None = None) -> int:
    """Run the program and give its exit code: 0, 1 (run again later) or 2 (needs a person)."""
    options = _parser().parse_args(arguments)
    configure_logging(options.log_level)
    node = _node(options, prober or HttpsProber())
    if options.action == "status":
        return _status(node)
    # As the first process of a container the program would otherwise not hear the signal at all.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report, code = _attempt(node, options)
    _publish(report, options.termination_log)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpushare-hostctl",
        description="Connect a control-plane node's kube-scheduler to the extender, or disconnect it.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    actions = parser.add_subparsers(dest="action", required=True, metavar="install | restore | status")
    common = _common_options()
    add = actions.add_parser("install", parents=[common], help="add the extender and wait for the scheduler")
    _add_extender_options(add, required=True)
    undo = actions.add_parser("restore", parents=[common], help="undo install, byte for byte")
    # Not needed, but so one command line serves for both.
    _add_extender_options(undo, required=False)
    actions.add_parser("status", parents=[common], help="print what lies on the node as JSON")
    return parser


def _common_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--root", type=Path, required=True, help="where the host's root is mounted (/host)")
    options.add_argument("--manifest", type=_absolute, default=_MANIFEST, help="on the host (%(default)s)")
    options.add_argument("--folder", type=_absolute, default=_FOLDER, help="folder of our own (%(default)s)")
    options.add_argument("--timeout", type=float, default=120.0, help="seconds per wait (%(default)s)")
    options.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    options.add_argument(
        "--termination-log",
        type=Path,
        default=_TERMINATION_LOG if _TERMINATION_LOG.exists() else None,
        help="file for the final report besides stdout",
    )
    return options


def _add_extender_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument("--extender-url", type=_url, required=required, help="such as http://127.0.0.1:32766")
    parser.add_argument(
        "--managed-resource",
        type=_resource,
        action="append",
        required=required,
        help="one of several",
    )
    parser.add_argument("--http-timeout", type=_duration, default="5s", help="of a call (%(default)s)")
    parser.add_argument("--prioritize-verb", help="have the extender score nodes under this path")
    parser.add_argument("--preempt-verb", help="have the extender check victims under this path")
    parser.add_argument("--weight", type=int, default=1, help="of the extender's scores (%(default)s)")


def _absolute(text: str) -> str:
    return _checked(text, ok=text.startswith("/") and ".." not in text, wanted="an absolute path on the host")


def _url(text: str) -> str:
    parts = urlsplit(text)
    ok = parts.scheme == "http" and bool(parts.hostname)
    return _checked(text, ok=ok, wanted="an http:// URL").rstrip("/")


def _resource(text: str) -> str:
    return _checked(text, ok=bool(_RESOURCE.fullmatch(text)), wanted="a resource such as gpushare.io/memory")


def _duration(text: str) -> str:
    return _checked(text, ok=bool(_DURATION.fullmatch(text)), wanted="a duration such as 5s")


def _checked(text: str, *, ok: bool, wanted: str) -> str:
    if not ok:
        raise argparse.ArgumentTypeError(f"{text!r} is not {wanted}")
    return text


def _node(options: argparse.Namespace, prober: Prober) -> Node:
    return Node(
        host=Host(options.root),
        location=Location(manifest=options.manifest, folder=options.folder),
        waiter=Waiter(prober=prober, clock=time.monotonic, sleep=time.sleep, timeout=options.timeout),
    )


def _extender(options: argparse.Namespace) -> Extender:
    return Extender(
        url=options.extender_url,
        managed_resources=tuple(dict.fromkeys(options.managed_resource)),
        http_timeout=options.http_timeout,
        prioritize_verb=options.prioritize_verb,
        preempt_verb=options.preempt_verb,
        weight=options.weight,
    )


def _attempt(node: Node, options: argparse.Namespace) -> tuple[Report, ExitCode]:
    before = _checksum(node)
    outcome: Outcome
    code = ExitCode.OK
    try:
        with node.host.lock(node.parent):
            outcome = _act(node, options)
    except (HostctlError, OSError) as error:
        _LOG.error("%s", error)
        outcome = Outcome(result="Failed", message=str(error))
        code = error.exit_code if isinstance(error, HostctlError) else ExitCode.RETRY
    except KeyboardInterrupt:
        outcome = Outcome(result="Failed", message="stopped from outside; run again to finish")
        code = ExitCode.RETRY
    except Exception as error:
        # Whatever lies on the host: the operator gets an answer it can show.
        _LOG.exception("unexpected error")
        outcome = Outcome(result="Failed", message=f"unexpected {error!r}; see the log of this Job")
        code = ExitCode.NEEDS_PERSON
    report = Report(
        result=outcome.result, message=outcome.message, sha256_before=before, sha256_after=_checksum(node)
    )
    return report, code


def _act(node: Node, options: argparse.Namespace) -> Outcome:
    if options.action == "install":
        return install.run(node, _extender(options))
    return restore.run(node)


def _checksum(node: Node) -> str | None:
    try:
        return node.checksum()
    except (HostctlError, OSError):
        return None


def _publish(report: Report, termination_log: Path | None) -> None:
    line = report.encode()
    print(line, flush=True)
    if termination_log is None:
        return
    try:
        termination_log.write_text(line)
    except OSError as error:
        _LOG.warning("cannot write %s: %s", termination_log, error.strerror)


def _status(node: Node) -> int:
    try:
        snapshot = node.snapshot()
        condition, message = plan.status(snapshot)
    except (HostctlError, OSError) as error:
        print(json.dumps({"state": "Unknown", "message": str(error), "sha256": _checksum(node)}))
        return getattr(error, "exit_code", ExitCode.RETRY)
    print(json.dumps(_status_document(snapshot, condition, message)))
    return ExitCode.OK


def _status_document(snapshot: plan.Snapshot, condition: plan.Condition, message: str) -> dict[str, object]:
    known = snapshot.state
    return {
        "state": condition,
        "message": message,
        "manifest": snapshot.location.manifest,
        "sha256": snapshot.manifest.sha256 if snapshot.manifest else None,
        "sha256Original": known.original.sha256 if known else None,
        "sha256Written": known.written[-1] if known else None,
        "backup": snapshot.location.inside(known.backup) if known else None,
        "config": snapshot.location.inside(known.config) if known else None,
    }


if __name__ == "__main__":
    sys.exit(main())
