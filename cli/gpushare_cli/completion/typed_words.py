"""The words of a command line that is being typed, as the program's own parser reads them."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

Action = argparse.Action


@dataclass(slots=True)
class TypedWords:
    """Reads words one after the other. What makes no sense is passed over: people still type."""

    parser: argparse.ArgumentParser
    """Of the program; then of the command that was typed."""
    default_command: str = ""
    """Its options may be given where no command has been typed."""
    given: dict[str, list[str]] = field(default_factory=dict)
    """Name of an argument -> its values, each as it was typed; a flag has none."""
    positionals: list[Action] = field(init=False)
    """What the next words mean that are no options, in this order."""
    actions: list[Action] = field(init=False)
    """All arguments that can be given."""
    pending: Action | None = field(default=None, init=False)
    """An option that takes the next word."""

    def __post_init__(self) -> None:
        self._begin(self.parser)
        for action in self.positionals:
            if isinstance(action, argparse._SubParsersAction) and self.default_command in action.choices:
                self.actions += _options(action.choices[self.default_command])

    def _begin(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser
        self.actions = [*parser._actions]
        self.positionals = [action for action in self.actions if not action.option_strings]

    def read(self, word: str) -> None:
        if self.pending and not (is_optional(self.pending) and word.startswith("-")):
            self._give(self.pending, word)
            self.pending = None
        elif is_option(word):
            self._read_option(word)
        elif self.positionals:
            self._read_positional(word)

    def _read_option(self, word: str) -> None:
        action, value = self.option(word)
        self.pending = None
        if action is None:
            return
        self.given.setdefault(action.dest, [])
        if value is not None:
            self._give(action, value)
        elif action.nargs != 0:
            self.pending = action

    def _read_positional(self, word: str) -> None:
        action = self.positionals[0]
        if isinstance(action, argparse._SubParsersAction):
            if word in action.choices:
                self._begin(action.choices[word])
            return
        self._give(action, word)
        if not is_repeated(action):
            self.positionals.pop(0)

    def _give(self, action: Action, value: str) -> None:
        self.given.setdefault(action.dest, []).append(value)

    def option(self, word: str) -> tuple[Action | None, str | None]:
        """Returns the option that a word names, and the value that the word has as well: ``-oyaml``,
        ``--output=yaml``."""
        options = {name: action for action in self.actions for name in action.option_strings}
        name, equals, value = word.partition("=")
        if not word.startswith("--") and word not in options:
            short = options.get(word[:2])
            return short, word[2:].removeprefix("=") if short else None
        return options.get(name), value if equals else None

    @property
    def options(self) -> Sequence[Action]:
        """The options that can still be given."""
        return [
            action
            for action in self.actions
            if action.option_strings
            and action.help != argparse.SUPPRESS
            and (action.dest not in self.given or isinstance(action, argparse._AppendAction))
        ]


def _options(parser: argparse.ArgumentParser) -> Sequence[Action]:
    own = [action for action in parser._actions if action.option_strings]
    return [action for action in own if not isinstance(action, argparse._HelpAction)]


def is_option(word: str) -> bool:
    """Returns whether it begins an option; ``-`` alone is a file: standard input."""
    return word.startswith("-") and word != "-"


def is_optional(action: Action) -> bool:
    """Returns whether an option may be without a value."""
    return action.nargs in (argparse.OPTIONAL, argparse.ZERO_OR_MORE)


def is_repeated(action: Action) -> bool:
    return action.nargs in (argparse.ZERO_OR_MORE, argparse.ONE_OR_MORE)
