"""Amounts, ages and lists of names, as people read them."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from gpushare_core.api.conditions import UNKNOWN
from gpushare_core.api.timestamps import read_rfc3339

MAX_SHOWN = 3
"""Names in a sentence; a cluster can have thousands."""

_SUFFIXES = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
_MINUTE, _HOUR, _DAY, _YEAR = 60, 3_600, 86_400, 365 * 86_400
_AGES = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
"""Below so many seconds -> seconds of the larger part, its letter; of the smaller part, its letter. Source:
``HumanDuration`` of ``k8s.io/apimachinery/pkg/util/duration``, by which kubectl writes ages."""


def memory_text(size: int) -> str:
    """Returns ``size`` bytes with at most one decimal, in a notation that manifests take, too.

    >>> memory_text(24 * 2**30), memory_text(1536 * 2**20), memory_text(0)
    ('24Gi', '1.5Gi', '0')
    """
    for suffix, scale in _SUFFIXES:
        if abs(size) >= scale:
            return f"{size / scale:.1f}".removesuffix(".0") + suffix
    return str(size)


def age_text(age: timedelta) -> str:
    """Returns an age as kubectl does: ``45s``, ``5m30s``, ``95m``, ``3h20m``, ``2d4h``.

    >>> age_text(timedelta(minutes=5)), age_text(timedelta(hours=50))
    ('5m', '2d2h')
    """
    seconds = max(0, int(age.total_seconds()))
    for limit, larger, letter, smaller, small_letter in _AGES:
        if seconds < limit:
            rest = seconds % larger // smaller if smaller else 0
            return f"{seconds // larger}{letter}" + (f"{rest}{small_letter}" if rest else "")
    return f"{seconds // _YEAR}y"


def age_since(moment: str, now: datetime) -> str:
    """Returns the age of something that began at ``moment``, a time of the API; ``Unknown`` if it is none."""
    began = read_rfc3339(moment)
    return age_text(now - began) if began else UNKNOWN


def counted(number: int, noun: str, plural: str = "") -> str:
    """
    >>> counted(1, "node"), counted(5000, "node"), counted(2, "policy", "policies")
    ('1 node', '5,000 nodes', '2 policies')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def listed(names: Iterable[str], shown: int = MAX_SHOWN) -> str:
    """
    >>> listed(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    every = list(names)
    more = f" and {len(every) - shown:,} more" if len(every) > shown else ""
    return ", ".join(every[:shown]) + more
