"""The reference of all commands, from their parser: ``python -m gpushare_cli.reference FOLDER [--check]``.

``cli.md`` is for people, ``cli-schema.json`` for programs that read what ``-o json`` prints.
"""

import argparse
import json
import sys
from argparse import Action, ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from textwrap import dedent
from typing import Any, get_args, get_type_hints

import msgspec

from gpushare_cli.arguments import DEFAULT_COMMAND, PROGRAM, program_parser
from gpushare_cli.commands.command import Command
from gpushare_cli.commands.table import COMMANDS
from gpushare_cli.output.format import Format
from gpushare_cli.report import API_VERSION, CommandReport, ExitStatus

TEXT, SCHEMA = "cli.md", "cli-schema.json"
HELP = {"-h", "--help", "-V", "--version"}
COMMON_GROUPS = ("which cluster", "output")
"""Groups of arguments that all commands share; ``-n`` and ``--watch`` only some."""

INTRODUCTION = f"""\
# The command line

`{PROGRAM}` says which pods hold which cards, why a pod waits, and what would fit. `make reference` writes
this page from the parser; `{PROGRAM} COMMAND --help` prints the same.
"""

FORMATS = {
    Format.TABLE: "for people (the default)",
    Format.WIDE: "the same with more columns, and full names",
    Format.JSON: f"one document with everything: `apiVersion: {API_VERSION}`, `kind`, and the fields"
    f" of [{SCHEMA}]({SCHEMA}). Fields are not renamed or removed within a version",
    Format.YAML: "the same document as YAML",
    Format.NAME: "a line with resource and name for each, as kubectl accepts them",
}

STATUSES = {
    ExitStatus.GOOD: "all is well",
    ExitStatus.NO: "the answer is no: something is wrong, does not fit, or is left",
    ExitStatus.CANNOT_LOOK: "something could not be read, or the arguments are wrong: the answer is"
    " not complete",
    ExitStatus.INTERRUPTED: "interrupted (Ctrl-C)",
}


def main() -> int:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="only tell whether the files are up to date")
    options = parser.parse_args()
    made = {options.folder / TEXT: reference_text(), options.folder / SCHEMA: schema_text()}
    stale = [path for path, text in made.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if options.check:
            sys.stderr.write(f"{path} is not what the parser says: run `make reference`\n")
        else:
            path.write_text(made[path])
    return int(options.check and bool(stale))


def reference_text() -> str:
    return "\n".join(_lines()).rstrip() + "\n"


def schema_text() -> str:
    return f"{json.dumps(_schema(), indent=1)}\n"


def reports_of(command: Command) -> Sequence[type[CommandReport]]:
    """Returns the types of report that the command's ``find`` may return, by its annotation."""
    returned = get_type_hints(command.find)["return"]
    return get_args(returned) or (returned,)


def parsers() -> Mapping[str, ArgumentParser]:
    """Command -> its parser."""
    return _subparsers().choices


def _subparsers() -> "argparse._SubParsersAction[ArgumentParser]":
    actions = program_parser()._actions
    return next(action for action in actions if isinstance(action, argparse._SubParsersAction))


def arguments_of(parser: ArgumentParser, *, common: bool) -> Iterator[Action]:
    """Yields what a command takes: of its own, or what it shares with others."""
    for group in parser._action_groups:
        if (group.title in COMMON_GROUPS) is common:
            yield from (action for action in group._group_actions if not _is_hidden(action))


def _is_hidden(action: Action) -> bool:
    return bool(HELP & set(action.option_strings)) or action.help == argparse.SUPPRESS


def _lines() -> Iterator[str]:
    yield from INTRODUCTION.splitlines()
    yield ""
    yield from _table(("command", ""), _rows())
    yield f"\nWithout a command: `{DEFAULT_COMMAND}`."
    yield from _shared()
    commands = {command.name: command for command in COMMANDS}
    for name, parser in parsers().items():
        yield from _section(name, parser)
        if name in commands:
            yield from _rest(commands[name])


def _rows() -> Iterator[Sequence[str]]:
    for row in _subparsers()._choices_actions:
        yield f"[`{row.dest}`](#{row.dest})", _escaped(row.help or "")


def _shared() -> Iterator[str]:
    yield "\n## What all commands take\n"
    shared: dict[str, Sequence[str]] = {}
    for parser in parsers().values():
        for action in arguments_of(parser, common=True):
            shared.setdefault(_spelled(action), _row(parser, action))
    yield from _table(("flag", ""), shared.values())
    yield (
        "\nOnly commands about namespaced objects have `-n` and `-A`; only commands that change nothing have"
        " `--watch` and `--every`.\n"
    )
    yield from _table(("`-o`", "prints"), ((f"`{name}`", says) for name, says in FORMATS.items()))
    yield ""
    yield from _table(("exit status", ""), ((f"{status:d}", says) for status, says in STATUSES.items()))


def _section(name: str, parser: ArgumentParser) -> Iterator[str]:
    yield f"\n## {name}\n"
    yield f"```text\n{_usage(parser)}\n```\n"
    yield from _markdown(parser.description or "")
    own = [*arguments_of(parser, common=False)]
    if own:
        yield ""
        yield from _table(("argument", ""), (_row(parser, action) for action in own))


def _rest(command: Command) -> Iterator[str]:
    yield "\nExamples:\n\n```sh"
    yield from command.examples
    kinds = ", ".join(f"`{report.kind}`" for report in reports_of(command))
    yield f"```\n\n`-o json`: {kinds}."


def _usage(parser: ArgumentParser) -> str:
    words = [PROGRAM, parser.prog.rpartition(" ")[2]]
    positional = [action for action in arguments_of(parser, common=False) if not action.option_strings]
    return " ".join([*words, *map(_value, positional), "[flags]"])


def _row(parser: ArgumentParser, action: Action) -> Sequence[str]:
    return f"`{_spelled(action)}`".replace("|", "\\|"), _escaped(
        parser._get_formatter()._expand_help(action) if action.help else ""
    )


def _spelled(action: Action) -> str:
    value = "" if action.nargs == 0 else _value(action)
    names = ", ".join(action.option_strings)
    return f"{names} {value}".strip()


def _value(action: Action) -> str:
    """Returns how the value is written, such as ``[NODE...]``."""
    name = _metavar(action)
    shapes = {"*": f"[{name}...]", "+": f"{name}...", "?": f"[{name}]"}
    return shapes.get(str(action.nargs), name)


def _metavar(action: Action) -> str:
    if action.metavar:
        return action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.choices:
        return "|".join(map(str, action.choices))
    return action.dest.upper().replace("_", "-")


def _table(header: Sequence[str], rows: Any) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield f"|{'---|' * len(header)}"
    for row in rows:
        yield f"| {' | '.join(' '.join(cell.split()) for cell in row)} |"


def _markdown(text: str) -> Iterator[str]:
    """Yields paragraphs, and what is indented as it is."""
    for is_indented, lines in groupby(text.splitlines(), key=lambda line: line.startswith("  ")):
        block = "\n".join(lines)
        yield f"```text\n{dedent(block)}\n```" if is_indented else _escaped(block)


def _escaped(text: str) -> str:
    """Returns plain text as Markdown."""
    return "".join(f"\\{letter}" if letter in "|<>*`[]" else letter for letter in text)


def _schema() -> Mapping[str, Any]:
    """Returns the JSON schema of every document that a command prints."""
    reports = {report.kind: report for command in COMMANDS for report in reports_of(command)}
    _, shapes = msgspec.json.schema_components(reports.values(), ref_template="#/$defs/{name}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"What {PROGRAM} -o json prints",
        "oneOf": [_document(kind, report) for kind, report in sorted(reports.items())],
        "$defs": dict(sorted(shapes.items())),
    }


def _document(kind: str, report: type[CommandReport]) -> Mapping[str, Any]:
    marks = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    return {
        "title": kind,
        "allOf": [{"$ref": f"#/$defs/{report.__name__}"}],
        "properties": marks,
        "required": [*marks],
    }


if __name__ == "__main__":
    sys.exit(main())
