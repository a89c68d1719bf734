"""Times and numbers on the command line."""

from argparse import ArgumentTypeError

MAX_DIGITS = 9
MAX_SECONDS = 24 * 3600


def whole_number_of(text: str) -> int:
    """Raises ``ArgumentTypeError`` for what is none, or negative."""
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS):
        raise ArgumentTypeError(f"{text!r} is no whole number such as 3, of {MAX_DIGITS} digits at most")
    return int(text)


def seconds_of(text: str) -> float:
    """Returns seconds. Raises ``ArgumentTypeError`` for what is no time such as ``90s``."""
    unit = {"s": 1, "m": 60, "h": 3600}.get(text[-1:], 0)
    try:
        seconds = float(text[:-1]) * unit if unit else float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= MAX_SECONDS:
        raise ArgumentTypeError(f"{text!r} is no time such as 90s, 10m or 1h, of a day at most")
    return seconds
