"""Holding the Lease by which one program at a time binds pods.

Two that bind do not see each other's reservations, and could give one card away twice. Which extender is
asked follows from kube-scheduler's own leader election. The extender that is asked takes the Lease, keeps it
while binds come, and gives it back soon after: one write in a few seconds, none per bind. A scheduler with
the plugin does the same (scheduler/internal/bindlease, which says why no two bind at a time): change both.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.lease_holder import LeaseHolder, NotHeldError
from gpushare_core.process.clock import steady_seconds
from gpushare_extender import PROGRAM
from gpushare_extender.bind.deadlines import (
    CALL_SECONDS,
    IDLE_SECONDS,
    LEASE_SECONDS,
    RENEW_SECONDS,
    BindTiming,
)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class BindLease:
    """The Lease ``gpushare-extender`` in ``namespace``, for the extender ``identity``.

    ``take_over`` is awaited before the first bind after the Lease was somebody else's: it updates the ledger
    from the API server. The Lease is not given back while ``in_use``: a Binding may be under way.
    """

    client: KubeClient
    namespace: str
    identity: str
    take_over: Callable[[], Awaitable[None]]
    in_use: Callable[[], bool] = lambda: False
    timing: BindTiming = field(default_factory=lambda: BindTiming(clock=steady_seconds))
    """Its clock goes on while the machine is suspended: for other extenders the Lease expires meanwhile."""
    _lease: LeaseHolder = field(init=False)
    _up_to_date: int = field(default=0, init=False)
    """The last holding of the Lease for which the ledger has seen what was bound before."""
    _last_use: float = field(default=float("-inf"), init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self._lease = LeaseHolder(
            client=self.client,
            namespace=self.namespace,
            name=PROGRAM,
            identity=self.identity,
            program="extender",
            does="answers binds",
            seconds=LEASE_SECONDS,
            call_seconds=float(CALL_SECONDS),
            clock=lambda: self.timing.clock(),
            now=lambda: self.timing.now(),
        )

    async def hold(self) -> int:
        """Returns when a Binding may be sent: the Lease is ours until the Binding has taken effect, or never
        will. The number is another one when somebody else may have had the Lease since the last time.

        Raises:
            NotHeldError: another extender may be binding.
        """
        self._last_use = self.timing.clock()
        while not self.permits:
            if not self._lease.lasts(self.timing.uncertain_for):
                async with self._writing:
                    await self._lease.ensure(self.timing.uncertain_for)
            else:
                await self._bring_up_to_date()
        return self._lease.holding

    async def keep(self) -> None:
        """Renews the Lease while it is used, gives it back afterwards, else watches it; never returns."""
        while True:
            await self.timing.sleep(RENEW_SECONDS)
            try:
                async with self._writing:
                    await self._look_after()
            except NotHeldError as error:
                _log.info("%s", error)

    async def release(self) -> None:
        """Gives the Lease back, unless it is in use.

        Raises:
            NotHeldError: it could not be written.
        """
        async with self._writing:
            if not self.in_use():
                await self._lease.release()

    @property
    def permits(self) -> bool:
        """Returns whether a Binding may be sent at this moment."""
        return self._lease.lasts(self.timing.uncertain_for) and self._is_up_to_date

    @property
    def holding(self) -> int:
        """Returns what ``hold`` has returned last."""
        return self._lease.holding

    @property
    def _is_up_to_date(self) -> bool:
        return self._up_to_date == self._lease.holding

    async def _look_after(self) -> None:
        used = self.in_use() or self.timing.clock() - self._last_use < IDLE_SECONDS
        if not self._lease.is_held:
            await self._lease.read()
        elif used:
            await self._lease.ensure(LEASE_SECONDS - RENEW_SECONDS / 2)
        else:
            await self._lease.release()

    async def _bring_up_to_date(self) -> None:
        """What is read counts only for the holding in which the read began."""
        async with self._reading:
            if not self._is_up_to_date:
                holding = self._lease.holding
                await self.take_over()
                self._up_to_date = holding
