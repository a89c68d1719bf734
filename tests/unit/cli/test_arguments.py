"""The command line: what it takes, and what it says about what it does not."""

import re

import pytest

from gpushare_cli.arguments import parse
from gpushare_cli.commands.command import Command
from gpushare_cli.commands.table import COMMANDS


def test_without_a_command_it_is_status() -> None:
    assert parse([]).command.name == "status"
    assert parse(["-o", "json"]).command.name == "status"
    options = parse(["--context", "version", "--watch"])
    assert (options.command.name, options.context, options.watch) == ("status", "version", 2.0)


def test_common_options_may_stand_before_the_command() -> None:
    options = parse(["--context", "east", "-o", "yaml", "version", "--no-headers"])
    assert (options.command.name, options.context, options.output) == ("version", "east", "yaml")
    assert options.no_headers


def test_every_says_how_often_to_watch() -> None:
    assert parse(["version", "--every", "0.5"]).watch == 0.5
    assert parse(["version"]).watch == 0.0


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon"])
def test_a_watch_needs_a_number_of_seconds(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse(["version", "--every", seconds])
    assert exit_.value.code == 2
    assert "is no number of seconds" in capsys.readouterr().err


def test_a_wrong_command_gets_a_guess_and_all_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse(["-o", "json", "vresion"])
    assert exit_.value.code == 2
    error = capsys.readouterr().err
    assert "there is no command 'vresion'; did you mean version?" in error
    assert "audit" in error


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["help"]])
def test_help_lists_the_commands(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse(arguments)
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    assert "usage: kubectl gpushare [COMMAND] [OPTIONS]" in out
    assert "  status      say whether all is well" in out


@pytest.mark.parametrize("arguments", [["help", "version"], ["version", "-h"], ["-h", "version"]])
def test_help_about_a_command(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        parse(arguments)
    assert exit_.value.code == 0
    assert "kubectl gpushare version" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_fits_a_terminal_and_begins_with_what_the_command_takes(
    command: Command, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        parse([command.name, "--help"])
    usage, blank, *others = capsys.readouterr().out.splitlines()
    assert usage.startswith(f"usage: kubectl gpushare {command.name} ")
    assert usage.endswith("[OPTIONS]")
    assert blank == ""
    assert "Examples:" in others
    assert [line for line in others if len(line) > 80] == []
    assert [line for line in others if re.search(r"\w-$", line)] == [], "a name can be copied as a whole"


def test_the_list_of_commands_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--help"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("words", [["-A"], ["status", "-n", "x"], ["-n", "x", "version"]])
def test_a_namespace_leaves_nothing_out_of_what_has_none(words: list[str]) -> None:
    assert parse(words).all_namespaces


def test_of_a_cluster_whose_pods_may_not_be_listed_a_namespace_says_whose_may() -> None:
    assert parse(["web", "-n", "team-a"]).namespace == "team-a"
    assert parse(["status"]).namespace == ""
