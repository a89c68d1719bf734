"""Whether the kubelet waits for an answer of ours: its requests come before everything else."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpushare_plugin.kubelet.reservations import UnitReservations

MAX_POSTPONED = 1.0
"""Seconds for which a round waits for the kubelet to be done with admitting pods: by then most bursts are
over, and a pod that is admitted during a round waits for three times as long as others."""
MAX_YIELDED = 0.05
"""Seconds for which a part of a round waits for a single call: it has its own reasons to take longer."""


class KubeletRequests:
    """Counts the requests under way. Pods come in bursts, and each waits for the one before it."""

    def __init__(self, reservations: UnitReservations) -> None:
        self._reservations = reservations
        self._count = 0
        self._over = asyncio.Event()
        self._over.set()

    @property
    def pending(self) -> bool:
        """Whether a request is under way, another one of the same pod follows, or one of the next pod may."""
        return self._count > 0 or self._reservations.remaining > 0

    @contextmanager
    def one(self) -> Iterator[None]:
        """While entered one request is under way."""
        self._count += 1
        self._over.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._over.set()

    async def yield_to_kubelet(self, *, most: float = MAX_YIELDED) -> None:
        """Lets whatever waits run, and returns once no request is under way, or after ``most`` seconds."""
        await asyncio.sleep(0)
        if self._count:
            with suppress(TimeoutError):
                async with asyncio.timeout(most):
                    await self._over.wait()

    async def until_over(self, *, most: float = MAX_POSTPONED) -> None:
        """Returns once none is pending, or after ``most`` seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(most):
                while self.pending:
                    await self._over.wait()
                    await asyncio.sleep(self._reservations.remaining)
