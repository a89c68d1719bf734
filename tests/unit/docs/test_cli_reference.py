"""docs/cli.md and its schema have every command, flag and report; documents name real command lines."""

import json
import re
import shlex
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import msgspec
import pytest

from gpushare_cli.arguments import parse
from gpushare_cli.commands.command import Command
from gpushare_cli.commands.table import COMMANDS
from gpushare_cli.reference import (
    HELP,
    SCHEMA,
    TEXT,
    arguments_of,
    parsers,
    reference_text,
    reports_of,
    schema_text,
)
from gpushare_cli.report import CommandReport

ROOT = Path(__file__).parents[3]
SHELL = {">", "|", "&&"}
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], key=str)
REFERENCE = (ROOT / "docs" / TEXT).read_text()

each_command = pytest.mark.parametrize(
    "command", [pytest.param(command, id=command.name) for command in COMMANDS]
)


def section(name: str) -> str:
    _, _, rest = REFERENCE.partition(f"\n## {name}\n")
    return rest.partition("\n## ")[0]


def test_the_files_are_what_the_parser_says() -> None:
    hint = "run `make reference`"
    assert reference_text() == REFERENCE, hint
    assert (ROOT / "docs" / SCHEMA).read_text() == schema_text(), hint


@each_command
def test_a_command_is_there_with_its_arguments_and_examples(command: Command) -> None:
    parser, text = parsers()[command.name], section(command.name)
    own = [option for action in arguments_of(parser, common=False) for option in action.option_strings]
    shared = [option for action in arguments_of(parser, common=True) for option in action.option_strings]
    assert [option for option in own if not re.search(rf"[` ]{option}[`, ]", text)] == []
    everywhere = section("What all commands take")
    assert [option for option in shared if not re.search(rf"[` ]{option}[`, ]", everywhere)] == []
    assert [example for example in command.examples if example not in text] == []


@each_command
def test_an_argument_is_explained(command: Command) -> None:
    actions = parsers()[command.name]._actions
    assert [
        action.dest for action in actions if not action.help and not HELP & {*action.option_strings}
    ] == []


@each_command
def test_a_report_is_in_the_schema_with_all_its_fields(command: Command) -> None:
    schema = json.loads((ROOT / "docs" / SCHEMA).read_text())
    documents = {document["title"]: document for document in schema["oneOf"]}
    for report in reports_of(command):
        assert issubclass(report, CommandReport)
        assert report is not CommandReport, "find's annotation names its own report"
        assert documents[report.kind]["properties"]["kind"] == {"const": report.kind}
        fields = {field.encode_name for field in msgspec.structs.fields(report)}
        assert fields == schema["$defs"][report.__name__]["properties"].keys()


def command_lines(text: str) -> Iterator[str]:
    """Yields what documents have people type, without variables in capitals and dots."""
    shell = "\n".join(re.findall(r"^ *```(?:sh|console)\n(.*?)^ *```", text, re.DOTALL | re.MULTILINE))
    shown = re.findall(r"^ *(?:\$ )?(kubectl gpushare(?: .*)?)$", shell, re.MULTILINE)
    inline = re.findall(r"`(kubectl gpushare [^`]*)`", text)
    yield from (line for line in (*shown, *inline) if "..." not in line and "COMMAND" not in line)


@pytest.mark.parametrize(
    "document", [pytest.param(path, id=str(path.relative_to(ROOT))) for path in DOCUMENTS]
)
def test_command_lines_in_documents_are_understood(document: Path) -> None:
    for line in command_lines(document.read_text()):
        _, _, *words = takewhile(lambda word: word not in SHELL, shlex.split(line, comments=True))
        assert is_understood(words), line


def is_understood(words: list[str]) -> bool:
    try:
        parse(words)
    except SystemExit as error:
        return not error.code
    return True
