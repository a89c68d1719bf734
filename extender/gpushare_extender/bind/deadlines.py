"""Clocks and deadlines of binds, each derived from those before it. Seconds."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.process.clock import utc_now

ANSWER_SECONDS = 4.0
"""Less than the 5 s that kube-scheduler waits for an extender by default."""
CALL_SECONDS = 4
"""For one Binding. The API server drops a request after the ``timeout`` that it carries."""
UNCERTAIN_SECONDS = 3.0 * CALL_SECONDS
"""So long after it was sent a Binding has taken effect, or never will."""
RENEW_SECONDS = float(CALL_SECONDS)
"""Between two looks at the Lease: one request has failed before the next begins."""
LEASE_SECONDS = int(UNCERTAIN_SECONDS + 2 * RENEW_SECONDS)
"""One renewal may fail, and Bindings can still be sent until the next."""
IDLE_SECONDS = UNCERTAIN_SECONDS
"""The Lease is given back so long after the last bind: no Binding can be under way then."""


@dataclass(frozen=True, slots=True)
class BindTiming:
    """Replaced in tests. Seconds, except ``now``."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = utc_now
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    answer_within: float = ANSWER_SECONDS
    uncertain_for: float = UNCERTAIN_SECONDS
