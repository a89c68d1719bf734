"""The clocks of every program. Where time matters they are passed in, and replaced in tests."""

import time
from datetime import UTC, datetime

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Only Linux has ``CLOCK_BOOTTIME``."""


def utc_now() -> datetime:
    """Returns the time of day, for people and for the API: it may jump, and other machines' clocks differ."""
    return datetime.now(UTC)


def steady_seconds() -> float:
    """Returns seconds since some moment, including those in which the machine was suspended.

    ``time.monotonic`` leaves these out: by it a Lease would still be ours after others saw it expire.
    """
    return time.clock_gettime(_STEADY)
