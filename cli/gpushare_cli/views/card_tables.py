"""What tables of cards, pods and use have in common: amounts, how many rows, what is not known."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from rich.console import RenderableType
from rich.text import Text

from gpushare_cli.output.lines import sentence
from gpushare_cli.output.page import OutputPage
from gpushare_cli.output.table import Cell
from gpushare_cli.output.terminal import PIPE_WIDTH
from gpushare_cli.wording import age_since, age_text, memory_text
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.dialects.table import RESOURCES

Row = TypeVar("Row")

MAX_ROWS = 500
"""Of a table on a terminal. A pipe gets all, and so does -o wide."""

UNKNOWN_AMOUNT = "?"
"""Not 0: nobody has measured it."""


def amount_text(size: int | None) -> str:
    return UNKNOWN_AMOUNT if size is None else memory_text(size)


def use_text(used: int | None, asked: int | None, *, exceeds: bool) -> Cell:
    """Returns such as ``2Gi/4Gi``; more than was asked for is marked in words."""
    text = f"{amount_text(used)}/{amount_text(asked)}"
    return Text(f"{text} OVER", "bold red") if exceeds else text


def over_text(since: str, evicted_from: str, looked_at: str) -> str:
    """Returns such as ``OVER for 5m, evicted in 20s``. All are times of the API, or empty."""
    now = read_rfc3339(looked_at)
    if now is None:
        return "OVER"
    duration = f" for {age_since(since, now)}" if since else ""
    eviction = read_rfc3339(evicted_from)
    if eviction is None:
        return f"OVER{duration}"
    when = f"evicted in {age_text(eviction - now)}" if eviction > now else "eviction is due"
    return f"OVER{duration}, {when}"


def isolation_text(kinds: Sequence[str], *, lacks: bool) -> str:
    """Returns what keeps containers to their units; empty where that is nothing, as their policy asks.

    >>> [isolation_text(kinds, lacks=True) for kinds in ([], ["Hook"])], isolation_text(["Hook"], lacks=False)
    (['none', 'Hook, not all'], 'Hook')
    """
    held = ", ".join(kinds)
    if lacks:
        return f"{held}, not all" if held else "none"
    return held


def units_text(units: Mapping[str, int]) -> str:
    """Returns units by the class of their resource, such as ``4 memory, 2 slice``.

    >>> units_text({"gpushare.io/memory": 4, "gpushare.io/card": 1})
    '4 memory, 1 card'
    """
    by_class: dict[str, int] = {}
    for name, amount in units.items():
        word = RESOURCES[name].value if name in RESOURCES else name
        by_class[word] = by_class.get(word, 0) + amount
    return ", ".join(f"{amount} {word}" for word, amount in by_class.items())


def rows_shown(rows: Sequence[Row], page: OutputPage) -> Sequence[Row]:
    return rows if page.is_wide or page.width >= PIPE_WIDTH else rows[:MAX_ROWS]


def nothing(sentence: str, unread: Sequence[str]) -> str:
    """Returns a sentence that says that there is nothing, as far as that is known."""
    return f"{sentence}, as far as could be read." if unread else f"{sentence}."


def notes(unmeasured: Sequence[str], unread: Sequence[str]) -> Iterator[RenderableType]:
    """Says what is not known, and how it becomes known."""
    if unmeasured or unread:
        yield ""
    for text in unmeasured:
        yield sentence(f"? {text}", style="dim")
    for text in unread:
        yield sentence(text, style="yellow")
