"""Completion by the program's own parser, and the scripts for shells."""

import argparse
import subprocess
from collections.abc import Iterator

import pytest

from gpushare_cli.arguments import command_names, program_parser
from gpushare_cli.completion.candidates import complete, value_name
from gpushare_cli.completion.cluster_names import ClusterNames
from gpushare_cli.completion.typed_words import TypedWords
from gpushare_cli.decide.completion_script import SCRIPTS
from gpushare_cli.main import main

OF_THE_CLUSTER = frozenset(ClusterNames({}).sources)


async def suggestions(*words: str) -> list[str]:
    found = await complete(TypedWords(program_parser()), words, {})
    return [suggestion.text for suggestion in found.suggestions]


async def test_every_command_is_offered() -> None:
    assert await suggestions("") == command_names()


@pytest.mark.parametrize("name", command_names())
async def test_every_command_offers_its_options(name: str) -> None:
    assert "--help" in await suggestions(name, "--")


async def test_formats_are_offered() -> None:
    assert await suggestions("version", "-o", "") == ["table", "wide", "json", "yaml", "name"]


def arguments_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from arguments_of(command)
        elif action.nargs != 0:
            yield action


def test_arguments_that_name_objects_are_called_as_completion_knows_them() -> None:
    dests = {"node", "nodes", "pod", "pods", "card", "cards", "namespace", "policy_name"}
    named = [action for action in arguments_of(program_parser()) if action.dest in dests]
    assert named
    assert [action for action in named if value_name(action) not in OF_THE_CLUSTER] == []


@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_script_is_printed_without_a_cluster(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr().out == SCRIPTS[shell]


def test_bash_takes_its_script() -> None:
    typed = 'COMP_LINE="kubectl-gpushare version --output=" COMP_POINT=35; _kubectl_gpushare'
    fake = 'kubectl-gpushare() { printf "%s\\n" "$@" >&2; printf "json\\ttext\\n:4\\n"; }'
    script = f'set -eu; {SCRIPTS["bash"]}\n{fake}; {typed} 2>&1; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "json\n"
