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

    ``NO_COLOR`` (https://no-color.org) counts where ``--color`` is left out.
    """
    has_color = color is ColorChoice.ALWAYS or (
        color is ColorChoice.AUTO and file.isatty() and not environment.get("NO_COLOR")
    )
    return Console(
        file=file,
        force_terminal=True if has_color else None,
        no_color=not has_color,
        color_system="standard" if has_color else None,
        width=None if file.isatty() else PIPE_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
    )


def page_of(console: Console, *, is_wide: bool, has_headers: bool, is_ascii: bool) -> OutputPage:
    """ASCII also where the encoding of the output has nothing else."""
    only_ascii = is_ascii or not (console.encoding or "").lower().startswith("utf")
    return OutputPage(width=console.width, is_wide=is_wide, has_headers=has_headers, is_ascii=only_ascii)
