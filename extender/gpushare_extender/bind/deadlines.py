"""Clocks and deadlines of binds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

ANSWER_SECONDS = 4.0
"""Less than the 5 s after which kube-scheduler gives an extender up by default."""
CALL_SECONDS = 4
"""For one Binding. The API server drops a request after the ``timeout`` that it carries."""
UNCERTAIN_SECONDS = 12.0
"""A Binding has taken effect, or never will, so long after it was sent: several times ``CALL_SECONDS``."""


@dataclass(frozen=True, slots=True)
class BindTiming:
    """Replaced in tests. Seconds, except ``now``."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    answer_within: float = ANSWER_SECONDS
    uncertain_for: float = UNCERTAIN_SECONDS
