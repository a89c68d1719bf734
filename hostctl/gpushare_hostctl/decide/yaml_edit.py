"""Core's edits of YAML texts, with this program's errors: what cannot be edited needs a person."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import ParamSpec, TypeVar

from gpushare_core.text import yaml_edit
from gpushare_core.text.yaml_edit import YamlPath
from gpushare_hostctl.errors import NeedsPersonError

__all__ = [
    "TooLongError",
    "YamlEditError",
    "YamlPath",
    "documents",
    "first_document",
    "insert_item",
    "naming",
    "remove_item",
]

P = ParamSpec("P")
T = TypeVar("T")


class YamlEditError(NeedsPersonError):
    """The text cannot be parsed, or not be changed without touching something else."""


class TooLongError(YamlEditError):
    """The text is longer than what is read of any; the message does not say which text."""


@contextmanager
def naming(text: str) -> Iterator[None]:
    """Says that ``text`` (in words) is what is too long. Raises NeedsPersonError."""
    try:
        yield
    except TooLongError as error:
        raise NeedsPersonError(f"{text} would be too long: {error}") from error


def _reported(edit: Callable[P, T]) -> Callable[P, T]:
    @wraps(edit)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return edit(*args, **keywords)
        except yaml_edit.TooLongError as error:
            raise TooLongError(str(error)) from error
        except yaml_edit.YamlEditError as error:
            raise YamlEditError(str(error)) from error

    return call


documents = _reported(yaml_edit.documents)
first_document = _reported(yaml_edit.first_document)
insert_item = _reported(yaml_edit.insert_item)
remove_item = _reported(yaml_edit.remove_item)
