"""The arguments of ``audit``."""

import argparse
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from gpushare_cli.gather.extender import KEYS

KUBELET_FOLDER = Path("/var/lib/kubelet")
SETTLE_SECONDS = 5.0
RESIDUE_SECONDS = 15.0

DESCRIPTION = """Compares what all books say of who has what of which card, and names each difference.

By itself it compares what the API server has: pods with their annotations, and GPUShareNodes. On a node, with
--host-folder, the kubelet's own books are compared, too; on a control-plane node, with --extender, the
extender's ledger. Exit status: 0 nothing found, 1 something found, 2 it could not look.
"""


def add_audit(parser: argparse.ArgumentParser, environment: Mapping[str, str]) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=_kubeconfig(environment),
        help="default: $KUBECONFIG, else ~/.kube/config, else the pod's ServiceAccount",
    )
    _add_sources(parser)
    parser.add_argument("--residue", action="store_true", help="instead: what of gpushare is left behind")
    parser.add_argument(
        "--host-root",
        type=Path,
        help="with --residue: look at the files of the host, too, whose root is here, as in /",
    )
    _add_times(parser)
    parser.add_argument("-o", "--output", choices=["text", "json"], default="text")


def complete(options: argparse.Namespace) -> None:
    """Adds the default that depends on another argument."""
    if options.settle is None:
        options.settle = RESIDUE_SECONDS if options.residue else SETTLE_SECONDS


def _add_sources(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--node", default="", help="only this node; needed for --host-folder")
    parser.add_argument(
        "--host-folder",
        type=Path,
        nargs="?",
        const=KUBELET_FOLDER,
        help="on the node itself: read the kubelet's books in its folder (without a value: %(const)s)",
    )
    parser.add_argument(
        "--extender", type=_https, help="on a control-plane node: URL, as in https://127.0.0.1:22766"
    )
    parser.add_argument("--keys", type=Path, default=KEYS, help="of --extender (default: %(default)s)")


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--settle",
        type=_seconds,
        help="seconds after which a difference has to be there still: pods may be on their way, and books"
        f" are read one after another (default: {SETTLE_SECONDS:g}); with --residue, for how long nothing may"
        " turn up, because kubelets write every ten seconds what they remember"
        f" (default: {RESIDUE_SECONDS:g}); 0: look once",
    )
    parser.add_argument(
        "--every",
        type=_seconds,
        default=0.0,
        metavar="SECONDS",
        help="audit again and again, with about so many seconds in between, until it is stopped",
    )


def _kubeconfig(environment: Mapping[str, str]) -> Path | None:
    named = environment.get("KUBECONFIG", "").split(os.pathsep)[0]
    usual = Path(environment.get("HOME", "/")) / ".kube" / "config"
    if named:
        return Path(named)
    return usual if usual.is_file() else None


def _https(text: str) -> str:
    parts = urlsplit(text)
    if parts.scheme != "https" or not parts.hostname:
        raise argparse.ArgumentTypeError(f"{text!r} is no https:// URL, such as https://127.0.0.1:22766")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to 3600")
    return seconds
