"""What could come next in a command line, by the parser alone."""

import argparse
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpushare_cli.completion.candidates import Completion, Directive, NameSource, Suggestion, complete
from gpushare_cli.completion.typed_words import TypedWords


def sample_parser() -> argparse.ArgumentParser:
    """Of a program with a command of every kind of argument."""
    program = argparse.ArgumentParser(prog="sample")
    program.add_argument("--version", action="store_true")
    commands = program.add_subparsers(metavar="COMMAND")
    look = commands.add_parser("look", help="look at nodes")
    look.add_argument("nodes", nargs="*", metavar="NODE")
    look.add_argument("--card", metavar="CARD", type=int)
    look.add_argument("-o", "--output", choices=["table", "json"], help="how to print")
    look.add_argument("-f", "--file", type=Path, metavar="FILE")
    look.add_argument("--watch", nargs="?", metavar="SECONDS")
    look.add_argument("--group", action="append")
    look.add_argument("--secret", help=argparse.SUPPRESS)
    lock = commands.add_parser("lock", help="lock a card")
    lock.add_argument("node", metavar="NODE")
    lock.add_argument("card", metavar="CARD")
    return program


async def nodes(_: TypedWords) -> Iterable[Suggestion]:
    return map(Suggestion, ("gpu-1", "gpu-2", "other"))


async def cards(typed: TypedWords) -> Iterable[Suggestion]:
    node = [name for dest in ("nodes", "node") for name in typed.given.get(dest, [])]
    return [Suggestion(f"{len(node)}", "model")]


SOURCES: dict[str, NameSource] = {"NODE": nodes, "CARD": cards}


async def completion(line: str) -> Completion:
    """Of a line as it was typed, after the program's name; it may end with a space."""
    typed = TypedWords(sample_parser(), default_command="look")
    return await complete(typed, line.split(" ") if line else [""], SOURCES)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("", ["look", "lock"], id="commands"),
        pytest.param("lo", ["look", "lock"], id="commands that begin so"),
        pytest.param("loc", ["lock"], id="one of them"),
        pytest.param("nothing ", ["look", "lock"], id="a word that is no command"),
        pytest.param("look --ou", ["--output"], id="an option"),
        pytest.param("look --output ", ["table", "json"], id="its choices"),
        pytest.param("look -o j", ["json"], id="a choice of its short form"),
        pytest.param("look --output=j", ["json"], id="a choice in the same word"),
        pytest.param("look --output json --ou", [], id="an option that is given already"),
        pytest.param("look --group a --gr", ["--group"], id="unless it may be repeated"),
        pytest.param("look --sec", [], id="what the help does not show"),
        pytest.param("look --unknown x", [], id="after an option that is none"),
        pytest.param("look gpu", ["gpu-1", "gpu-2"], id="names of the cluster"),
        pytest.param("look gpu-1 gpu", ["gpu-2"], id="another name"),
        pytest.param("look --watch o", ["other"], id="after an option that may be without a value"),
        pytest.param("look --watch 5 o", ["other"], id="after its value"),
        pytest.param("lock gpu-1 ", ["1"], id="cards of a node"),
        pytest.param("look gpu-1 gpu-2 --card ", ["2"], id="cards of two nodes"),
        pytest.param("lock gpu-1 3 ", [], id="no more arguments"),
        pytest.param("--vers", ["--version"], id="the program's own option"),
        pytest.param("--outp", ["--output"], id="an option of the default command"),
        pytest.param("-o ", ["table", "json"], id="and its choices"),
        pytest.param("-o json look --ou", [], id="given before the command"),
    ],
)
async def test_what_could_come_next(line: str, expected: list[str]) -> None:
    found = await completion(line)
    assert [suggestion.text for suggestion in found.suggestions] == expected


@pytest.mark.parametrize(
    ("line", "directive"), [("look -f ", 0), ("look --file=a", 0), ("look ", 4), ("", 4)]
)
async def test_files_are_offered_where_a_file_is_meant(line: str, directive: int) -> None:
    assert (await completion(line)).directive is Directive(directive)


async def test_it_is_printed_as_kubectl_reads_it() -> None:
    assert str(await completion("lock gpu-1 ")) == "1\tmodel\n:4\n"
    assert "--output\thow to print\n" in str(await completion("look -"))


def test_a_name_of_the_cluster_moves_no_cursor() -> None:
    assert str(Suggestion("a\tb", "c\nd\x1b[2J")) == "a\\u0009b\tc\\u000ad\\u001b[2J"
