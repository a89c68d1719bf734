"""Times as kubectl's ``--request-timeout`` takes them. Source: client-go, ``clientcmd.ParseTimeout``."""

import re

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
MAX_CHARACTERS = 64
MAX_SECONDS = 24 * 3600.0


def read_duration(text: str) -> float:
    """Returns the seconds in ``text``: a number of them, or a duration of Go such as ``1m30s``.

    Raises ``ValueError`` for anything else, what is negative, and more than a day.
    """
    seconds = float(text) if text.isascii() and text.isdigit() else _go_duration(text)
    if len(text) > MAX_CHARACTERS or seconds > MAX_SECONDS:
        raise ValueError("more than a day")
    return seconds


def _go_duration(text: str) -> float:
    parts = _PART.findall(text[:MAX_CHARACTERS])
    if not parts or "".join(number + unit for number, unit in parts) != text.removeprefix("+"):
        raise ValueError("no number of seconds, and no time such as 5s, 2m or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
