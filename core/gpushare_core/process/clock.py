"""The clocks of every program; where time matters they are passed in, and replaced in tests."""

import time
from datetime import UTC, datetime

_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Only Linux has the first."""


def utc_now() -> datetime:
    """Returns the time of day, for people and for the API: others' clocks differ from it, and it may jump."""
    return datetime.now(UTC)


def steady_seconds() -> float:
    """Returns seconds since some moment, also those in which the machine was suspended.

    ``time.monotonic`` leaves these out: by it a Lease would still be ours that others saw expire.
    """
    return time.clock_gettime(_STEADY)
