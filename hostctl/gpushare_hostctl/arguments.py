"""The command line of gpushare-hostctl: its commands and their options."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from gpushare_core.api.enums import Engine
from gpushare_core.placement.node_ranking import MAX_WEIGHT, WEIGHT
from gpushare_core.process.arguments import Parser
from gpushare_core.process.version import VERSION
from gpushare_hostctl.decide.scheduler.extender_entry import ExtenderEntry
from gpushare_hostctl.decide.scheduler.plugin_entry import PluginEntry
from gpushare_hostctl.decide.scheduler.scheduler_config import EngineEntry

_MANIFEST = "/etc/kubernetes/manifests/kube-scheduler.yaml"
_FOLDER = "/etc/kubernetes/gpushare"
_RENDERED = "/etc/kubernetes/gpushare-scheduler.yaml"
_KUBEADM_FLAG = "--kubeconfig=/etc/kubernetes/scheduler.conf"
_TERMINATION_LOG = Path("/dev/termination-log")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_EXTENDER_GROUP = 65532
_DURATION = re.compile(r"(\d+(\.\d+)?(ms|s|m|h))+")
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]*")
_RESOURCE = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?/[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Exits with code 2, as argparse does, when the options are wrong."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if "extender_url" in options:
        _check_engine(parser, options)
    return options


def _check_engine(parser: Parser, options: argparse.Namespace) -> None:
    """Ends the program where an option is missing, or is of the other engine."""
    needed = {"extender_url": Engine.EXTENDER}
    if options.command == "install":
        needed |= {"scheduler_image": Engine.PLUGIN, "lease_namespace": Engine.PLUGIN}
    chosen = _chosen_engine(options)
    for name, engine_name in needed.items():
        if bool(getattr(options, name)) != (engine_name is chosen):
            option = f"--{name.replace('_', '-')}"
            parser.error(f"{option} is needed with --engine {engine_name}, and only there")


def _chosen_engine(options: argparse.Namespace) -> Engine:
    return Engine(getattr(options, "engine", Engine.EXTENDER))


def engine(options: argparse.Namespace) -> EngineEntry:
    """Returns what places pods, as kube-scheduler's configuration is to say it."""
    if _chosen_engine(options) is Engine.EXTENDER:
        return extender_entry(options)
    return PluginEntry(
        lease_namespace=options.lease_namespace,
        resources=tuple(dict.fromkeys((*options.managed_resource, *options.ignored_resource))),
        weight=options.weight,
        image=getattr(options, "scheduler_image", ""),
    )


def extender_entry(options: argparse.Namespace) -> ExtenderEntry:
    return ExtenderEntry(
        url=options.extender_url,
        managed_resources=tuple(dict.fromkeys(options.managed_resource)),
        ignored_resources=tuple(dict.fromkeys(options.ignored_resource)),
        http_timeout=options.http_timeout,
        prioritize_verb=options.prioritize_verb,
        weight=options.weight,
    )


def _parser() -> Parser:
    parser = Parser(
        prog="gpushare-hostctl",
        description="Connects a control-plane node's kube-scheduler to gpushare, or undoes that.",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {VERSION}")
    commands = parser.add_subparsers(
        dest="command", required=True, metavar="keys | install | restore | status | render | dedicated"
    )
    common = _common_options()
    install = commands.add_parser(
        "install", parents=[common], help="edit kube-scheduler's manifest, and wait until it serves"
    )
    _add_engine(install)
    _add_extender_options(install)
    install.add_argument(
        "--scheduler-image",
        type=_image,
        metavar="IMAGE",
        help=f"with --engine {Engine.PLUGIN}: image of gpushare's kube-scheduler, which the node already has",
    )
    install.add_argument(
        "--lease-namespace",
        metavar="NAMESPACE",
        help=f"with --engine {Engine.PLUGIN}: namespace of the Lease whose holder binds pods",
    )
    install.add_argument(
        "--rolled-back-inputs",
        metavar="DIGEST",
        help="'inputs' in the report of a rollback: if they are the same now, try nothing again",
    )
    keys = commands.add_parser("keys", parents=[common], help="make or renew the keys of an https extender")
    for parser_with_keys in (install, keys):
        parser_with_keys.add_argument(
            "--extender-group",
            type=int,
            default=_EXTENDER_GROUP,
            help="group that may read the extender's keys (default: %(default)s)",
        )
    commands.add_parser("restore", parents=[common], help="undo install, byte for byte")
    commands.add_parser("status", parents=[common], help="print as JSON what is installed on the node")
    _add_render(commands)
    _add_dedicated(commands)
    _add_log_folder(commands)
    for command in commands.choices.values():
        command.add_argument("--log-level", default="info", choices=("debug", "info", "warning", "error"))
    return parser


def _add_dedicated(commands: "argparse._SubParsersAction[Parser]") -> None:
    dedicated = commands.add_parser(
        "dedicated", help="in a pod: write the files that its kube-scheduler and its extender need"
    )
    _add_engine(dedicated)
    _add_extender_options(dedicated)
    dedicated.add_argument("--folder", type=Path, required=True, help="folder that both containers mount")
    dedicated.add_argument("--scheduler-name", required=True, help="schedulerName of the pods that it places")
    dedicated.add_argument(
        "--lease-namespace", required=True, help="namespace of the Lease that its replicas share"
    )


def _add_engine(parser: Parser) -> None:
    parser.add_argument(
        "--engine",
        choices=[*Engine],
        default=Engine.EXTENDER,
        help="what chooses cards: the extender, or gpushare's own kube-scheduler (default: %(default)s)",
    )


def _add_log_folder(commands: "argparse._SubParsersAction[Parser]") -> None:
    folder = commands.add_parser("log-folder", help="let the extender's group write to an empty folder")
    folder.add_argument("--folder", type=Path, required=True, help="where the host's folder is mounted")
    folder.add_argument(
        "--group", type=int, default=_EXTENDER_GROUP, help="the extender's group (default: %(default)s)"
    )


def _add_render(commands: "argparse._SubParsersAction[Parser]") -> None:
    render = commands.add_parser(
        "render",
        help="print the configuration and the steps to connect kube-scheduler by hand",
        description="Prints kube-scheduler's configuration with the extender to the standard output, and what"
        " to do with it to the standard error. Changes nothing.",
    )
    _add_extender_options(render)
    render.add_argument(
        "--config", type=Path, metavar="FILE", help="kube-scheduler's present configuration, to extend"
    )
    render.add_argument(
        "--target",
        type=_absolute,
        default=_RENDERED,
        help="where you will save the configuration on the host (default: %(default)s)",
    )
    render.add_argument(
        "--folder", type=_absolute, default=_FOLDER, help="folder of the keys (default: %(default)s)"
    )
    render.add_argument("--kubernetes-version", default="", metavar="1.36", help="version of kube-scheduler")
    render.add_argument(
        "flags",
        nargs="*",
        default=[_KUBEADM_FLAG],
        metavar="-- FLAG",
        help=f"kube-scheduler's present flags; without --config, those that a configuration overrides are"
        f" copied into it (default: {_KUBEADM_FLAG})",
    )


def _common_options() -> Parser:
    options = Parser(add_help=False)
    options.add_argument(
        "--root", type=Path, required=True, help="where the host's root is mounted, such as /host"
    )
    options.add_argument(
        "--manifest",
        type=_absolute,
        default=_MANIFEST,
        help="kube-scheduler's manifest on the host (default: %(default)s)",
    )
    options.add_argument(
        "--folder",
        type=_absolute,
        default=_FOLDER,
        help="gpushare's folder on the host (default: %(default)s)",
    )
    options.add_argument(
        "--timeout", type=_seconds, default=120.0, help="seconds per wait (default: %(default)s)"
    )
    options.add_argument(
        "--termination-log",
        type=Path,
        default=_TERMINATION_LOG if _TERMINATION_LOG.exists() else None,
        help="file for the final report, besides stdout",
    )
    return options


def _add_extender_options(parser: Parser) -> None:
    parser.add_argument(
        "--extender-url", type=_url, help="URL of the extender, such as https://127.0.0.1:22766"
    )
    parser.add_argument(
        "--managed-resource",
        type=_resource,
        action="append",
        required=True,
        help="resource that nodes offer; may be repeated",
    )
    parser.add_argument(
        "--ignored-resource",
        type=_resource,
        action="append",
        default=[],
        help="resource that pods may ask for though no node offers it; may be repeated",
    )
    parser.add_argument(
        "--http-timeout",
        type=_duration,
        default="5s",
        help="timeout of a call of the extender (default: %(default)s)",
    )
    parser.add_argument(
        "--prioritize-verb", help="path at which the extender scores nodes; default: it scores none"
    )
    parser.add_argument(
        "--weight",
        type=_weight,
        default=WEIGHT,
        help="weight of gpushare's scores, 1 to 100 (default: %(default)s)",
    )


def _absolute(text: str) -> str:
    valid = text.startswith("/") and ".." not in text
    return _checked(text, valid=valid, expected="an absolute path on the host")


def _url(text: str) -> str:
    parts = urlsplit(text)
    valid = parts.scheme == "http" and bool(parts.hostname)
    # The certificates are for an extender on the same host.
    valid = valid or (parts.scheme == "https" and parts.hostname in _LOOPBACK)
    expected = "an http:// URL, or an https:// one of 127.0.0.1, [::1] or localhost"
    return _checked(text, valid=valid, expected=expected).rstrip("/")


def _image(text: str) -> str:
    return _checked(
        text, valid=bool(_IMAGE.fullmatch(text)), expected="an image such as gpushare-scheduler:1"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    _checked(text, valid=0 < seconds < float("inf"), expected="a positive number of seconds")
    return seconds


def _weight(text: str) -> int:
    valid = text in map(str, range(1, MAX_WEIGHT + 1))
    return int(_checked(text, valid=valid, expected=f"a number from 1 to {MAX_WEIGHT}"))


def _resource(text: str) -> str:
    valid = bool(_RESOURCE.fullmatch(text))
    return _checked(text, valid=valid, expected="a resource such as gpushare.io/memory")


def _duration(text: str) -> str:
    return _checked(text, valid=bool(_DURATION.fullmatch(text)), expected="a duration such as 5s")


def _checked(text: str, *, valid: bool, expected: str) -> str:
    if not valid:
        raise argparse.ArgumentTypeError(f"{text!r} is not {expected}")
    return text
