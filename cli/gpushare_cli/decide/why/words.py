"""Amounts of the classes of resources, and ages, in words for people."""

from datetime import datetime, timedelta

from gpushare_cli.wording import age_text, counted, memory_text
from gpushare_core.api.timestamps import read_rfc3339
from gpushare_core.placement.requests import ResourceClass

NOUNS = {ResourceClass.MEMORY: "unit", ResourceClass.SLICE: "slice", ResourceClass.CARD: "card"}


def amount(units: int, resource: ResourceClass, bytes_of_unit: int | None = None) -> str:
    """Returns such as ``1 card``, or ``20 units (20Gi)`` where the size of a unit is known."""
    memory = f" ({memory_text(units * bytes_of_unit)})" if bytes_of_unit else ""
    return f"{counted(units, NOUNS[resource])}{memory}"


def seconds_since(moment: str, now: datetime) -> int | None:
    """Returns None where ``moment`` (RFC 3339) is none."""
    since = read_rfc3339(moment)
    return max(0, int((now - since).total_seconds())) if since else None


def seconds_text(seconds: int) -> str:
    return age_text(timedelta(seconds=seconds))
