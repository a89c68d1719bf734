"""Times on the command line."""

from argparse import ArgumentTypeError

MAX_SECONDS = 24 * 3600


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
