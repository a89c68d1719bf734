"""The command line of ``kubectl gpushare``: the arguments that all commands share, and a parser for each."""

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpushare_cli import audit_arguments
from gpushare_cli.commands.command import Command
from gpushare_cli.commands.completion import add_completion
from gpushare_cli.commands.table import COMMANDS
from gpushare_cli.output.format import Format
from gpushare_cli.output.terminal import ColorChoice
from gpushare_core.process.arguments import Parser
from gpushare_core.process.version import VERSION

PROGRAM = "kubectl gpushare"
DESCRIPTION = "Ask which pods hold which GPU cards, why a pod waits, and what would fit."
DEFAULT_COMMAND = "status"
"""What ``kubectl gpushare`` alone runs."""
WATCH_SECONDS = 2.0


def parse(
    arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ
) -> argparse.Namespace:
    """Returns the options, with the row of ``COMMANDS`` as ``command``. Exits with status 2 and a message for
    people when the arguments make no sense."""
    options = program_parser(environment).parse_args(arguments)
    if options.command is None:
        audit_arguments.complete(options)
    return options


def program_parser(environment: Mapping[str, str]) -> Parser:
    parser = Parser(
        prog=PROGRAM, description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"kubectl-gpushare {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        _add_command(
            commands.add_parser(
                command.name,
                help=command.summary,
                description=command.description,
                epilog="\n".join(("Examples:", *(f"  {example}" for example in command.examples))),
                formatter_class=argparse.RawDescriptionHelpFormatter,
            ),
            command,
        )
    audit = commands.add_parser("audit", help="compare all books", description=audit_arguments.DESCRIPTION)
    audit_arguments.add_audit(audit, environment)
    audit.set_defaults(command=None)
    add_completion(commands)
    return parser


def _add_command(parser: argparse.ArgumentParser, command: Command) -> None:
    command.add_arguments(parser)
    parser.set_defaults(command=command)
    _add_cluster(parser.add_argument_group("which cluster"), command)
    _add_output(parser.add_argument_group("output"), command)


def _add_cluster(group: argparse._ArgumentGroup, command: Command) -> None:
    group.add_argument(
        "--kubeconfig",
        type=Path,
        help="default: the files in $KUBECONFIG, else ~/.kube/config, else the pod's ServiceAccount",
    )
    group.add_argument("--context", default="", help="of the kubeconfig; default: its current one")
    group.add_argument("--as", dest="impersonated", default="", metavar="USER", help="act as somebody else")
    group.add_argument(
        "--as-group", action="append", default=[], metavar="GROUP", help="with --as; may be repeated"
    )
    group.add_argument(
        "--request-timeout",
        default="0",
        metavar="TIME",
        help="of a request, such as 5s or 2m; 0: the default",
    )
    if command.is_namespaced:
        group.add_argument("-n", "--namespace", default="", help="default: that of the context")
        group.add_argument("-A", "--all-namespaces", action="store_true", help="of all namespaces")
    else:
        group.set_defaults(namespace="", all_namespaces=True)


def _add_output(group: argparse._ArgumentGroup, command: Command) -> None:
    group.add_argument(
        "-o", "--output", type=Format, choices=[*Format], default=Format.TABLE, help="default: table"
    )
    group.add_argument("--no-headers", action="store_true", help="of tables")
    group.add_argument(
        "--color",
        type=ColorChoice,
        choices=[*ColorChoice],
        default=ColorChoice.AUTO,
        help="default: auto, colours on a terminal unless $NO_COLOR is set",
    )
    group.add_argument("--ascii", action="store_true", help="print ASCII alone")
    if command.can_watch:
        group.add_argument(
            "-w",
            "--watch",
            type=float,
            nargs="?",
            const=WATCH_SECONDS,
            default=0.0,
            metavar="SECONDS",
            help=f"ask again and again, by default every {WATCH_SECONDS:g} seconds",
        )
    else:
        group.set_defaults(watch=0.0)
