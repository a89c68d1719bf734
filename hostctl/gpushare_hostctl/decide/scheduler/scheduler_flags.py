"""The command line of kube-scheduler, read the way pflag reads it.

Source: ``cmd/kube-scheduler/app/options`` of Kubernetes 1.36; ``_`` and ``-`` in names are the same there
(``WordSepNormalizeFunc``) and of a flag that is given twice the last one counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpushare_hostctl.errors import NeedsPersonError


@dataclass(frozen=True)
class Flag:
    """One occurrence of a flag."""

    name: str
    value: str | None
    index: int
    """Of the word with the name."""
    value_index: int | None
    """Of the word with the value; None for ``--name`` alone."""


@dataclass(frozen=True)
class SchedulerFlags:
    """The words of kube-scheduler's command line after the program's name."""

    words: tuple[str, ...]

    def all(self, name: str) -> list[Flag]:
        return [flag for flag in _scan(self.words) if flag.name == name]

    def last(self, name: str) -> Flag | None:
        """Returns the occurrence that counts."""
        occurrences = self.all(name)
        return occurrences[-1] if occurrences else None

    def value(self, name: str) -> str | None:
        """Returns the value that counts; None when the flag is not there.

        Raises NeedsPersonError for a flag without a value, and for a value that the kubelet expands only when
        it starts the container.
        """
        flag = self.last(name)
        if flag is None:
            return None
        if flag.value is None:
            raise NeedsPersonError(f"the flag --{name} of kube-scheduler has no value; give it one")
        return _literal(name, flag.value)

    def boolean(self, name: str) -> bool | None:
        """Returns a boolean flag's value, ``--name`` alone being true; None when the flag is not there.

        Raises NeedsPersonError for a value that Go's ``strconv.ParseBool`` would refuse.
        """
        flag = self.last(name)
        if flag is None:
            return None
        return _parse_boolean(name, "true" if flag.value is None else _literal(name, flag.value))


def _scan(words: Sequence[str]) -> list[Flag]:
    # Long flags only. kube-scheduler takes no arguments, so a word without dashes is a flag's value.
    flags: list[Flag] = []
    for index, word in enumerate(words):
        if word == "--":
            break
        if word.startswith("--"):
            flags.append(_flag(words, index))
    return flags


def _flag(words: Sequence[str], index: int) -> Flag:
    name, equals, value = words[index][2:].partition("=")
    name = name.replace("_", "-")
    if equals:
        return Flag(name=name, value=value, index=index, value_index=index)
    following = words[index + 1] if index + 1 < len(words) else "-"
    if following.startswith("-"):
        return Flag(name=name, value=None, index=index, value_index=None)
    return Flag(name=name, value=following, index=index, value_index=index + 1)


def _literal(name: str, value: str) -> str:
    if "$(" in value:
        raise NeedsPersonError(
            f"the flag --{name}={value} of kube-scheduler takes its value from the environment, "
            "which cannot be read from the manifest; write the value out"
        )
    return value


def _parse_boolean(name: str, value: str) -> bool:
    # The spellings of Go's strconv.ParseBool.
    if value in {"1", "t", "T", "true", "TRUE", "True"}:
        return True
    if value in {"0", "f", "F", "false", "FALSE", "False"}:
        return False
    raise NeedsPersonError(f"the flag --{name}={value} of kube-scheduler is neither true nor false")
