"""``audit``: whether all records agree, or what of gpushare is left."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import RenderableType

from gpushare_cli.commands.command import Command, Session
from gpushare_cli.decide.audit import AuditReport
from gpushare_cli.decide.residue import ResidueReport
from gpushare_cli.errors import CannotLookError
from gpushare_cli.output.page import OutputPage

KUBELET_FOLDER = Path("/var/lib/kubelet")
KEYS = Path("/etc/kubernetes/gpushare")
SETTLE_SECONDS = 5.0
RESIDUE_SECONDS = 15.0

DESCRIPTION = """\
Compares all records of which pod holds how much of which card, and names each
difference.

By default it compares what the API server has: annotations of pods, and GPUShareNodes. On a node,
--host-folder adds the kubelet's own records. On a control-plane node, --extender adds the extender's ledger.
With --residue it names instead what is left of gpushare after the last policy.

Exit status: 0 nothing found, 1 something found, 2 it could not look."""


def _add_arguments(parser: ArgumentParser) -> None:
    _add_sources(parser)
    parser.add_argument("--residue", action="store_true", help="instead: name what is left of gpushare")
    parser.add_argument(
        "--host-root",
        type=Path,
        metavar="FOLDER",
        help="with --residue: also look at the host's files below this folder, such as /",
    )
    _add_times(parser)


def _add_sources(parser: ArgumentParser) -> None:
    parser.add_argument("--node", default="", help="only this node; needed for --host-folder")
    parser.add_argument(
        "--host-folder",
        type=Path,
        nargs="?",
        const=KUBELET_FOLDER,
        metavar="FOLDER",
        help="on the node itself: read the kubelet's records in this folder (without a value: %(const)s)",
    )
    parser.add_argument(
        "--extender",
        type=_https,
        metavar="URL",
        help="on a control-plane node, with engine Extender: its URL, such as https://127.0.0.1:22766",
    )
    parser.add_argument(
        "--keys",
        type=Path,
        default=KEYS,
        metavar="FOLDER",
        help="folder of the keys for --extender (default: %(default)s)",
    )


def _add_times(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--settle",
        type=_seconds,
        metavar="SECONDS",
        help="name only differences that last this long, because pods come and go"
        f" (default: {SETTLE_SECONDS:g}); with --residue: look this long before saying that nothing is left,"
        f" because kubelets write what they remember every ten seconds (default: {RESIDUE_SECONDS:g});"
        " 0: look once",
    )
    parser.add_argument(
        "--every",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="repeat the audit about every so many seconds, until you stop it",
    )


async def _find(session: Session, options: Namespace) -> AuditReport | ResidueReport:
    if options.host_folder and not options.node:
        raise CannotLookError("--host-folder needs --node, the name of the node that this runs on")
    return await (_residue(session, options) if options.residue else _differences(session, options))


async def _differences(session: Session, options: Namespace) -> AuditReport:
    from gpushare_cli.gather.differences import AuditScope, find_differences

    scope = AuditScope(
        node=options.node, host_folder=options.host_folder, extender=options.extender, keys=options.keys
    )
    settle = SETTLE_SECONDS if options.settle is None else options.settle
    return await find_differences(session.client, scope, settle=settle)


async def _residue(session: Session, options: Namespace) -> ResidueReport:
    from gpushare_cli.gather.residue import HostRoot, find_residue

    return await find_residue(
        session.client,
        host=HostRoot(path=options.host_root, node=options.node),
        settle=RESIDUE_SECONDS if options.settle is None else options.settle,
        progress=session.progress,
    )


def _view(report: AuditReport | ResidueReport, page: OutputPage) -> Iterable[RenderableType]:
    from gpushare_cli.views.audit import audit_view, residue_view

    return audit_view(report, page) if isinstance(report, AuditReport) else residue_view(report, page)


def _https(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname:
        raise ArgumentTypeError(f"{text!r} is no https:// URL, such as https://127.0.0.1:22766")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise ArgumentTypeError(f"{text!r} is no number of seconds from 0 to 3600")
    return seconds


AUDIT_COMMAND = Command(
    name="audit",
    summary="compare all records of who holds what, or name what is left of gpushare",
    description=DESCRIPTION,
    examples=(
        "kubectl gpushare audit",
        "kubectl gpushare audit --residue",
        "kubectl gpushare audit --node gpu-1 --host-folder   # as root on gpu-1",
        "kubectl gpushare audit --extender https://127.0.0.1:22766   # as root there",
    ),
    add_arguments=_add_arguments,
    find=_find,
    view=_view,
    is_namespaced=False,
    can_watch=False,
)
