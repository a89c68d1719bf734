"""What could come next: commands, options and values as the program's own parser knows them, and names of
objects of the cluster."""

import argparse
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntFlag
from pathlib import Path

from gpushare_cli.completion.typed_words import Action, TypedWords, is_optional
from gpushare_core.text.printable import printable


class Directive(IntFlag):
    """What the shell does besides. Source: ``ShellCompDirective`` of github.com/spf13/cobra."""

    FILES = 0
    """It offers files where there is no candidate."""
    NO_FILES = 4


@dataclass(frozen=True, slots=True)
class Suggestion:
    text: str
    help: str = ""

    def __str__(self) -> str:
        return printable(self.text) + (f"\t{printable(self.help)}" if self.help else "")


@dataclass(frozen=True, slots=True)
class Completion:
    suggestions: Sequence[Suggestion]
    directive: Directive = Directive.NO_FILES

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in (*self.suggestions, f":{self.directive.value}"))


NameSource = Callable[[TypedWords], Awaitable[Iterable[Suggestion]]]
"""Asks the cluster that the command line names."""

FILES = frozenset({"FILE", "FILES", "FILENAME"})


async def complete(typed: TypedWords, words: Sequence[str], sources: Mapping[str, NameSource]) -> Completion:
    """Returns what could be the last of ``words``. ``sources``: what a value stands for, as ``value_name``
    says it -> where its names come from."""
    last = words[-1] if words else ""
    for word in words[:-1]:
        typed.read(word)
    found = await _suggestions(typed, last, sources)
    prefix = last.partition("=")[2] if last.startswith("-") and "=" in last else last
    kept = [suggestion for suggestion in found.suggestions if suggestion.text.startswith(prefix)]
    return Completion(kept, found.directive)


async def _suggestions(typed: TypedWords, last: str, sources: Mapping[str, NameSource]) -> Completion:
    if last.startswith("-"):
        action, value = typed.option(last)
        if value is None:
            return Completion([*_options(typed)])
        return await _values(typed, action, sources)
    if typed.pending and not is_optional(typed.pending):
        return await _values(typed, typed.pending, sources)
    return await _values(typed, typed.positionals[0] if typed.positionals else None, sources)


def _options(typed: TypedWords) -> Iterator[Suggestion]:
    for action in typed.options:
        for name in action.option_strings:
            yield Suggestion(name, _help(typed.parser, action))


def _help(parser: argparse.ArgumentParser, action: Action) -> str:
    return parser._get_formatter()._expand_help(action) if action.help else ""


async def _values(typed: TypedWords, action: Action | None, sources: Mapping[str, NameSource]) -> Completion:
    if action is None:
        return Completion([])
    if isinstance(action, argparse._SubParsersAction):
        return Completion([Suggestion(row.dest, row.help or "") for row in action._choices_actions])
    if action.choices is not None:
        return Completion([Suggestion(str(choice)) for choice in action.choices])
    if source := sources.get(value_name(action)):
        taken = typed.given.get(action.dest, [])
        return Completion([found for found in await source(typed) if found.text not in taken])
    is_file = action.type is Path or value_name(action) in FILES
    return Completion([], Directive.FILES if is_file else Directive.NO_FILES)


def value_name(action: Action) -> str:
    """Returns what ``--help`` calls a value of the argument, such as ``NODE``."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    return name.upper()
