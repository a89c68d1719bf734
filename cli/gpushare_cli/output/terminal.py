"""Where a command writes: a terminal, or a pipe or file."""

from collections.abc import Mapping
from enum import StrEnum
from typing import TextIO

from rich.console import Console

from gpushare_cli.output.page import OutputPage

PIPE_WIDTH = 10_000
"""Columns of what is no terminal: a program that reads a table wants no line broken."""


class ColorChoice(StrEnum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def console_of(file: TextIO, *, color: ColorChoice, environment: Mapping[str, str]) -> Console:
    """Returns a console without markup or guesses: what objects contain is text.

    ``NO_COLOR`` (https://no-color.org) counts where ``--color`` is left out. ``COLUMNS`` counts in a pipe as
    well: ``watch`` and scripts set it.
    """
    has_color = color is ColorChoice.ALWAYS or (
        color is ColorChoice.AUTO and is_terminal(file, environment) and not environment.get("NO_COLOR")
    )
    return Console(
        file=file,
        force_terminal=True if has_color else None,
        no_color=not has_color,
        color_system="standard" if has_color else None,
        width=_columns(environment) or (None if file.isatty() else PIPE_WIDTH),
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
    )


def is_terminal(file: TextIO, environment: Mapping[str, str]) -> bool:
    """Whether ``file`` is a terminal that can move its cursor."""
    return file.isatty() and environment.get("TERM", "") not in ("", "dumb")


def _columns(environment: Mapping[str, str]) -> int:
    text = environment.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= len(str(PIPE_WIDTH)) else 0


def page_of(console: Console, *, is_wide: bool, has_headers: bool, is_ascii: bool) -> OutputPage:
    """ASCII also where the encoding of the output has nothing else."""
    only_ascii = is_ascii or not (console.encoding or "").lower().startswith("utf")
    return OutputPage(width=console.width, is_wide=is_wide, has_headers=has_headers, is_ascii=only_ascii)
