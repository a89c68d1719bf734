"""The command line of ``kubectl gpushare``: the arguments that all commands share, and a parser for each."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill, wrap

from gpushare_cli.commands.command import Command
from gpushare_cli.commands.table import COMMANDS
from gpushare_cli.login.duration import read_duration
from gpushare_cli.output.format import Format
from gpushare_cli.output.terminal import ColorChoice
from gpushare_core.kube.client import REQUEST_TIMEOUT
from gpushare_core.process.arguments import Parser
from gpushare_core.process.version import VERSION

PROGRAM = "kubectl gpushare"
DESCRIPTION = "Ask which pods hold which GPU cards, why a pod waits, and what would fit."
DEFAULT_COMMAND = "status"
"""What ``kubectl gpushare`` alone runs."""
EPILOG = f"""\
Without a command: {DEFAULT_COMMAND}. kubectl gpushare COMMAND --help explains a command.

Exit status: 0 all is well; 1 the answer is no; 2 it could not look;
130 interrupted."""
HELP_COLUMNS = 80
WATCH_SECONDS = 2.0
MAX_WATCH_SECONDS = 86_400.0


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Breaks no line at a hyphen: names, such as of annotations, stay whole."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return wrap(text, width, break_on_hyphens=False)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Returns the options, with the row of ``COMMANDS`` as ``command``. Exits with status 2 and a message for
    people when the arguments make no sense."""
    given = sys.argv[1:] if arguments is None else arguments
    parser = program_parser()
    return parser.parse_args(_with_command(list(given), parser))


def program_parser() -> Parser:
    parser = Parser(
        prog=PROGRAM,
        usage=f"{PROGRAM} [COMMAND] [OPTIONS]",
        description=f"{DESCRIPTION}\n\n{_command_list()}",
        epilog=EPILOG,
        formatter_class=HelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"kubectl-gpushare {VERSION}")
    commands = parser.add_subparsers(prog=PROGRAM, required=True, metavar="COMMAND", help=argparse.SUPPRESS)
    for command in COMMANDS:
        _add_command(
            commands.add_parser(
                command.name,
                help=command.summary,
                description=paragraphs(command.description),
                epilog="\n".join(("Examples:", *(f"  {example}" for example in command.examples))),
                formatter_class=HelpFormatter,
            ),
            command,
        )
    return parser


def _command_list() -> str:
    """Returns the commands with their summaries, in 80 columns: argparse breaks most of them."""
    width = max(map(len, command_names())) + 4
    lines = (
        fill(
            f"{command.name:<{width - 2}}{command.summary}",
            HELP_COLUMNS,
            initial_indent="  ",
            subsequent_indent=" " * width,
        )
        for command in COMMANDS
    )
    return "\n".join(("commands:", *lines))


def command_names() -> list[str]:
    return [command.name for command in COMMANDS]


def _with_command(given: list[str], parser: Parser) -> list[str]:
    """Returns the arguments with a command first: options that all commands share may stand before it."""
    words = _common_parser().parse_known_args(given)[0].words
    before = given[: len(given) - len(words)]
    if not words:
        asks_about_all = {"-h", "--help", "--version"} & set(before)
        return before if asks_about_all else [DEFAULT_COMMAND, *before]
    name, *after = words
    if name == "help":
        return [*before, *after, "--help"]
    if name not in command_names():
        parser.error(_no_such_command(name))
    return [name, *before, *after]


def _common_parser() -> Parser:
    """Knows the options that all commands share; what follows them are ``words``."""
    parser = Parser(prog=PROGRAM, add_help=False)
    parser.add_argument("-h", "--help", "--version", action="store_true")
    _add_cluster(parser.add_argument_group(), is_namespaced=True)
    _add_output(parser.add_argument_group(), can_watch=True)
    parser.add_argument("words", nargs=argparse.REMAINDER)
    return parser


def _no_such_command(name: str) -> str:
    from difflib import get_close_matches

    meant = get_close_matches(name, command_names(), n=1)
    guess = f"; did you mean {meant[0]}?" if meant else "."
    return f"there is no command {name!r}{guess} The commands are {', '.join(command_names())}"


def _add_command(parser: argparse.ArgumentParser, command: Command) -> None:
    command.add_arguments(parser)
    parser.usage = usage_of(parser)
    parser.set_defaults(command=command, every=0.0)
    if command.needs_cluster:
        _add_cluster(parser.add_argument_group("which cluster"), is_namespaced=command.is_namespaced)
    else:
        parser.set_defaults(all_namespaces=True)
    _add_output(parser.add_argument_group("output"), can_watch=command.can_watch)


def usage_of(parser: argparse.ArgumentParser) -> str:
    """Returns the command's own arguments alone: those that all commands share would hide them."""
    arguments = " ".join(
        _usage_word(parser, action) for action in parser._actions if not action.option_strings
    )
    return " ".join(filter(None, (parser.prog, arguments, "[OPTIONS]"))).replace("%", "%%")


def _usage_word(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    formatter = parser._get_formatter()
    return formatter._format_args(action, formatter._get_default_metavar_for_positional(action))


def paragraphs(text: str) -> str:
    """Returns ``text`` with lines that fit ``HELP_COLUMNS``; those of commands, which are indented, stay."""
    parts = text.split("\n\n")
    return "\n\n".join(part if part.startswith(" ") else _filled(part) for part in parts)


def _filled(text: str) -> str:
    return fill(text, HELP_COLUMNS, break_on_hyphens=False)


def _add_cluster(group: argparse._ArgumentGroup, *, is_namespaced: bool) -> None:
    group.add_argument(
        "--kubeconfig",
        type=Path,
        help="default: the files in $KUBECONFIG, else ~/.kube/config, else the pod's ServiceAccount",
    )
    group.add_argument("--context", default="", help="context of the kubeconfig; default: the current one")
    group.add_argument("--cluster", default="", help="cluster of the kubeconfig instead of the context's")
    group.add_argument("--user", default="", help="user of the kubeconfig instead of the context's")
    group.add_argument("--as", dest="impersonated", default="", metavar="USER", help="act as another user")
    group.add_argument(
        "--as-group", action="append", default=[], metavar="GROUP", help="with --as; may be repeated"
    )
    group.add_argument("--as-uid", dest="impersonated_uid", default="", metavar="UID", help="with --as")
    group.add_argument(
        "--as-user-extra",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="with --as; may be repeated",
    )
    group.add_argument(
        "--request-timeout",
        type=_duration,
        default=0.0,
        metavar="TIME",
        help="for a request, and for a login plugin of the kubeconfig, such as 5s or 2m;"
        f" default: {REQUEST_TIMEOUT:g}s",
    )
    if is_namespaced:
        group.add_argument("-n", "--namespace", default="", help="default: the context's")
        group.add_argument("-A", "--all-namespaces", action="store_true", help="all namespaces")
    else:
        # As kubectl get nodes has it: all that may be read is shown. Of pods that is one namespace, at least.
        group.add_argument("-n", "--namespace", default="", help=argparse.SUPPRESS)
        group.add_argument("-A", "--all-namespaces", dest="_all", action="store_true", help=argparse.SUPPRESS)
        group.set_defaults(all_namespaces=True)


def _duration(text: str) -> float:
    try:
        return read_duration(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from error


def _add_output(group: argparse._ArgumentGroup, *, can_watch: bool) -> None:
    group.add_argument(
        "-o", "--output", type=Format, choices=[*Format], default=Format.TABLE, help="default: table"
    )
    group.add_argument("--no-headers", action="store_true", help="print tables without headers")
    group.add_argument(
        "--color",
        type=ColorChoice,
        choices=[*ColorChoice],
        default=ColorChoice.AUTO,
        help="default: auto, colours on a terminal unless $NO_COLOR is set",
    )
    group.add_argument("--ascii", action="store_true", help="print only ASCII")
    if can_watch:
        _add_watch(group)
    else:
        group.set_defaults(watch=0.0)


def _add_watch(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "-w",
        "--watch",
        action="store_const",
        const=WATCH_SECONDS,
        default=0.0,
        help=f"repeat every {WATCH_SECONDS:g} seconds, until Ctrl-C",
    )
    group.add_argument(
        "--every",
        dest="watch",
        type=_seconds,
        metavar="SECONDS",
        default=0.0,
        help="repeat every so many seconds, until Ctrl-C",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_WATCH_SECONDS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number of seconds from more than 0 to {MAX_WATCH_SECONDS:,.0f}"
        )
    return seconds
