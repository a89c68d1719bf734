"""Amounts, nodes and times in words for people."""

from collections.abc import Sequence
from datetime import datetime

from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.placement.requests import ResourceClass

NOUNS = {ResourceClass.MEMORY: "unit", ResourceClass.SLICE: "slice", ResourceClass.CARD: "card"}
MAX_NAMES = 3
_SIZES = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_TIMES = ((86_400, "day"), (3600, "hour"), (60, "minute"))


def count(number: int, noun: str) -> str:
    """Returns such as ``1 node`` or ``2 nodes``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def amount(units: int, resource: ResourceClass) -> str:
    return count(units, NOUNS[resource])


def size(memory: int) -> str:
    """Returns bytes with a tenth at most, such as ``1.5 GiB``."""
    for least, name in _SIZES:
        if memory >= least:
            return f"{memory / least:.1f}".removesuffix(".0") + f" {name}"
    return f"{memory} bytes"


def listed(names: Sequence[str], most: int = MAX_NAMES) -> str:
    """Returns such as ``a, b and 7 more``."""
    if len(names) <= most:
        return " and ".join(filter(None, (", ".join(names[:-1]), names[-1] if names else "")))
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def duration(seconds: int) -> str:
    """Returns the largest part alone: ``3 minutes``."""
    for length, noun in _TIMES:
        if seconds >= length:
            return count(seconds // length, noun)
    return count(max(0, seconds), "second")


def seconds_since(moment: str, now: datetime) -> int | None:
    """Returns None where ``moment`` (RFC 3339) is none."""
    since = read_rfc3339(moment)
    return max(0, int((now - since).total_seconds())) if since else None
