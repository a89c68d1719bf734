"""Bars: how much of something is held, to be seen at a glance. The figure always stands beside it."""

from functools import lru_cache

from rich.text import Text

from gpushare_cli.output.page import OutputPage

WIDTH = 10
_BLOCKS = ("\u2588", "\u2591")
_ASCII = ("#", ".")
"""Held, free."""


def held_bar(*, held: int, total: int, page: OutputPage, width: int = WIDTH) -> Text:
    """Returns ``████░░░░``, in ASCII ``####....``: never all free while something is held, nor all held while
    something is free. More held than there is fills the bar."""
    return _drawn(
        held_cells(held=held, total=total, width=width), width, *(_ASCII if page.is_ascii else _BLOCKS)
    )


@lru_cache(maxsize=64)
def _drawn(cells: int, width: int, full: str, empty: str) -> Text:
    """Returns one for all of a kind: thousands of cards have few different bars."""
    return Text.assemble((full * cells, "cyan"), (empty * (width - cells), "dim"))


def held_cells(*, held: int, total: int, width: int = WIDTH) -> int:
    """Returns how many of ``width`` cells are held."""
    if total <= 0 or held <= 0:
        return 0
    if held >= total:
        return width
    return min(max(1, round(held * width / total)), width - 1)
