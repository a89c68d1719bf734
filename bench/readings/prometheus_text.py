"""Numbers out of what a program shows to Prometheus."""

import re
from collections.abc import Mapping

from bench.measuring.figures import NotMeasuredError

_LINE = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def by_label(text: str, metric: str, label: str) -> dict[str, float]:
    """Returns the sums of ``metric`` by the values of ``label``; of series without it under an empty name."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line)) and match["name"] == metric:
            labels: Mapping[str, str] = dict(_LABEL.findall(match["labels"] or ""))
            value = labels.get(label, "")
            found[value] = found.get(value, 0.0) + float(match["value"])
    return found


def total(text: str, metric: str) -> float:
    """Returns the sum of ``metric`` over all labels; 0 where it was never counted."""
    return sum(by_label(text, metric, "").values())


def mean_between(before: str, after: str, histogram: str) -> float:
    """Returns the mean of what ``histogram`` has observed between two readings.

    Raises:
        NotMeasuredError: nothing was observed, or the program was restarted.
    """
    count = total(after, f"{histogram}_count") - total(before, f"{histogram}_count")
    if count <= 0:
        raise NotMeasuredError(f"{histogram} has observed nothing")
    return (total(after, f"{histogram}_sum") - total(before, f"{histogram}_sum")) / count
