"""Amounts of memory and units as tables have them."""

from collections.abc import Mapping

from rich.text import Text

from gpushare_cli.wording import memory_text
from gpushare_core.dialects.table import RESOURCES

UNKNOWN_AMOUNT = "?"
"""Not 0: nobody has measured it."""


def amount_text(size: int | None) -> str:
    return UNKNOWN_AMOUNT if size is None else memory_text(size)


def use_text(used: int | None, asked: int | None, *, exceeds: bool) -> Text:
    """Returns such as ``2Gi/4Gi``; more than was asked for is marked in words."""
    text = f"{amount_text(used)}/{amount_text(asked)}"
    return Text(f"{text} OVER", "bold red") if exceeds else Text(text)


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
