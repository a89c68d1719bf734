"""Holding the Lease by which one extender at a time answers binds.

Two extenders that bind do not see each other's reservations and could promise one card twice. Which of them
is asked follows from kube-scheduler's own leader election: the one that is asked takes the Lease, keeps it
while binds come, and gives it back soon after. What it costs is one write in a few seconds, none per bind.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gpushare_core.json_object import Json
from gpushare_core.kube.client import KubeClient, Request
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import lease_path, leases
from gpushare_extender.bind.deadlines import CALL_SECONDS, BindTiming
from gpushare_extender.decide.lease import (
    LEASE_SECONDS,
    LeaseObserver,
    LeaseState,
    held_lease,
    read_lease,
    released_lease,
)

LEASE_NAME = "gpushare-extender"
RENEW_SECONDS = 4.0
IDLE_SECONDS = 5.0
"""The Lease is given back so long after the last bind."""

_log = logging.getLogger(__name__)


class NotHeldError(Exception):
    """Another extender may be answering binds, or nobody can tell; the text says why, for people."""


@dataclass(slots=True)
class BindLease:
    """The Lease ``gpushare-extender`` in ``namespace``, for the extender ``identity``.

    ``take_over`` is awaited after the Lease was somebody else's, before the first bind: it brings the ledger
    up to what the API server has. ``in_use`` tells whether binds are under way.
    """

    client: KubeClient
    namespace: str
    identity: str
    take_over: Callable[[], Awaitable[None]]
    in_use: Callable[[], bool] = lambda: False
    timing: BindTiming = field(default_factory=BindTiming)
    _valid_until: float = field(default=float("-inf"), init=False)
    """By our clock. Counted from before each renewal was sent: it began no earlier for the others."""
    _written: LeaseState | None = field(default=None, init=False)
    """As we wrote it last."""
    _is_up_to_date: bool = field(default=False, init=False)
    """Whether the ledger has seen what the holder before did."""
    _last_use: float = field(default=float("-inf"), init=False)
    _observer: LeaseObserver = field(init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self._observer = LeaseObserver(self.identity)

    async def hold(self) -> None:
        """Returns when a Binding may be sent: the Lease is ours until it has taken effect, or never will.

        Raises:
            NotHeldError: another extender may be binding.
        """
        self._last_use = self.timing.clock()
        while not (self._lasts(self.timing.uncertain_for) and self._is_up_to_date):
            if not self._lasts(self.timing.uncertain_for):
                async with self._writing:
                    await self._ensure(self.timing.uncertain_for)
            else:
                await self._bring_up_to_date()

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
        """Gives the Lease back. Only when no bind is under way."""
        async with self._writing:
            await self._release()

    @property
    def _is_held(self) -> bool:
        return self._written is not None and self._written.holder == self.identity

    async def _look_after(self) -> None:
        used = self.in_use() or self.timing.clock() - self._last_use < IDLE_SECONDS
        if not self._is_held:
            await self._read()
        elif used:
            await self._ensure(LEASE_SECONDS - RENEW_SECONDS / 2)
        else:
            await self._release()

    def _lasts(self, seconds: float) -> bool:
        return self._valid_until - self.timing.clock() >= seconds

    async def _ensure(self, seconds: float) -> None:
        if not self._lasts(seconds):
            await self._take(await self._read())

    async def _take(self, before: LeaseState | None) -> None:
        if left := self._observer.seconds_left(now=self.timing.clock()):
            holder = before.holder if before else ""
            raise NotHeldError(
                f"the extender {holder} answers binds: this one may in {left:.0f} s, or once that one is idle"
            )
        sent = self.timing.clock()
        if before is None or (before.holder != self.identity and before != self._written):
            self._is_up_to_date = False
            _log.info("taking over the binds from %s", (before and before.holder) or "nobody")
        lease = held_lease(before, name=LEASE_NAME, identity=self.identity, now=self.timing.now())
        self._written = await self._write(lease, creates=before is None)
        self._valid_until = sent + LEASE_SECONDS

    async def _release(self) -> None:
        if self._written is None or not self._is_held:
            return
        self._valid_until = float("-inf")
        lease = released_lease(self._written, name=LEASE_NAME, now=self.timing.now())
        self._written = await self._write(lease, creates=False)

    async def _bring_up_to_date(self) -> None:
        async with self._reading:
            if not self._is_up_to_date:
                await self.take_over()
                self._is_up_to_date = True

    # Calls

    async def _read(self) -> LeaseState | None:
        """Returns None when there is no such Lease yet."""
        try:
            lease = await self._send(Request(path=self._path, timeout=float(CALL_SECONDS)))
        except ApiError as error:
            if error.is_not_found:
                return None
            raise NotHeldError(f"cannot read the Lease {LEASE_NAME}: {error}") from error
        state = read_lease(lease)
        self._observer.observe(state, now=self.timing.clock())
        return state

    async def _write(self, lease: Json, *, creates: bool) -> LeaseState:
        try:
            written = read_lease(
                await self._send(
                    Request(
                        method="POST" if creates else "PUT",
                        path=leases(self.namespace) if creates else self._path,
                        body=lease,
                        timeout=float(CALL_SECONDS),
                    )
                )
            )
        except ApiError as error:
            self._written, self._valid_until = None, float("-inf")
            raise NotHeldError(f"cannot write the Lease {LEASE_NAME}: {error}") from error
        self._observer.observe(written, now=self.timing.clock())
        return written

    async def _send(self, request: Request) -> Json:
        try:
            return await self.client.send(request)
        except UnreachableError as error:
            raise NotHeldError(f"cannot tell which extender may bind: {error}") from error

    @property
    def _path(self) -> str:
        return lease_path(self.namespace, LEASE_NAME)
