"""Holding the Lease by which one extender at a time answers binds.

Two extenders that bind do not see each other's reservations and could promise one card twice. Which of them
is asked follows from kube-scheduler's own leader election: the one that is asked takes the Lease, keeps it
while binds come, and gives it back soon after. What it costs is one write in a few seconds, none per bind.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from gpushare_core.clock import steady_seconds
from gpushare_core.json_object import Json
from gpushare_core.kube.client import KubeClient, Request
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import lease_path
from gpushare_extender.bind.deadlines import (
    CALL_SECONDS,
    IDLE_SECONDS,
    LEASE_SECONDS,
    RENEW_SECONDS,
    BindTiming,
)
from gpushare_extender.decide.lease import Lease, LeaseObserver, LeaseState, held_lease, released_lease

LEASE_NAME = "gpushare-extender"

_log = logging.getLogger(__name__)


class NotHeldError(Exception):
    """Another extender may be answering binds, or nobody can tell; the text says why, for people."""


@dataclass(slots=True)
class BindLease:
    """The Lease ``gpushare-extender`` in ``namespace``, for the extender ``identity``.

    ``take_over`` is awaited after the Lease was somebody else's, before the first bind: it brings the ledger
    up to what the API server has. ``in_use`` tells whether a Binding may be under way: until none is, the
    Lease is not given back.
    """

    client: KubeClient
    namespace: str
    identity: str
    take_over: Callable[[], Awaitable[None]]
    in_use: Callable[[], bool] = lambda: False
    timing: BindTiming = field(default_factory=lambda: BindTiming(clock=steady_seconds))
    """By a clock that goes on while the machine is suspended: for the others the Lease expires meanwhile."""
    _valid_until: float = field(default=float("-inf"), init=False)
    """By our clock. Counted from before each renewal was sent: it began no earlier for the others."""
    _written: LeaseState | None = field(default=None, init=False)
    """As we wrote it last."""
    _holding: int = field(default=0, init=False)
    """Counts up whenever the Lease is taken and somebody else may have had it since we did."""
    _up_to_date: int = field(default=0, init=False)
    """The last of these holdings for which the ledger has seen what those before did."""
    _last_use: float = field(default=float("-inf"), init=False)
    _observer: LeaseObserver = field(init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    def __post_init__(self) -> None:
        self._observer = LeaseObserver(self.identity, LEASE_SECONDS)

    async def hold(self) -> int:
        """Returns when a Binding may be sent: the Lease is ours until it has taken effect, or never will.

        The number is another one when somebody else may have had the Lease since the last time.

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
        return self._holding

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
                await self._release()

    @property
    def _is_held(self) -> bool:
        return self._written is not None and self._written.holder == self.identity

    @property
    def _is_up_to_date(self) -> bool:
        return self._up_to_date == self._holding

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
        self._raise_if_relied_on(before)
        sent = self.timing.clock()
        if before is None or self._written is None or before.version != self._written.version:
            self._holding += 1
            _log.info("taking over the binds from %s", (before and before.holder) or "nobody")
        lease = held_lease(
            before, name=LEASE_NAME, identity=self.identity, seconds=LEASE_SECONDS, now=self.timing.now()
        )
        self._written = await self._write(lease)
        self._valid_until = sent + LEASE_SECONDS

    def _raise_if_relied_on(self, present: LeaseState | None) -> None:
        """Raises ``NotHeldError`` while somebody else may rely on the Lease."""
        if present is None and self._lasts(0.0):
            return  # deleted while it was ours
        left = self._observer.seconds_left(now=self.timing.clock())
        if not left:
            return
        if present is None:
            raise NotHeldError(
                f"the Lease {LEASE_NAME} was deleted: this extender may bind in {left:.0f} s, when nobody "
                "relies on it any more"
            )
        raise NotHeldError(
            f"the extender {present.holder} answers binds: this one may in {left:.0f} s, or once that one is "
            "idle"
        )

    async def _release(self) -> None:
        if self._written is None or not self._is_held:
            return
        self._valid_until = float("-inf")
        lease = released_lease(self._written, name=LEASE_NAME, now=self.timing.now())
        self._written = await self._write(lease)

    async def _bring_up_to_date(self) -> None:
        """What is read counts only for the holding in which the reading began."""
        async with self._reading:
            if not self._is_up_to_date:
                holding = self._holding
                await self.take_over()
                self._up_to_date = holding

    # Calls

    async def _read(self) -> LeaseState | None:
        """Returns None when there is no such Lease."""
        state = None
        try:
            state = await self._send(Request(path=self._path, timeout=float(CALL_SECONDS)))
        except ApiError as error:
            if not error.is_not_found:
                raise NotHeldError(f"cannot read the Lease {LEASE_NAME}: {error}") from error
        self._observer.observe(state, now=self.timing.clock())
        return state

    async def _write(self, lease: Json) -> LeaseState:
        """A PUT also creates a Lease that is missing: the right to that can be given for one name only."""
        request = Request(method="PUT", path=self._path, body=lease, timeout=float(CALL_SECONDS))
        try:
            written = await self._send(request)
        except ApiError as error:
            if error.is_final:
                self._written, self._valid_until = None, float("-inf")
            raise NotHeldError(f"cannot write the Lease {LEASE_NAME}: {error}") from error
        self._observer.observe(written, now=self.timing.clock())
        return written

    async def _send(self, request: Request) -> LeaseState:
        try:
            return (await self.client.read(request, shape=Lease)).state()
        except UnreachableError as error:
            raise NotHeldError(f"cannot tell which extender may bind: {error}") from error

    @property
    def _path(self) -> str:
        return lease_path(self.namespace, LEASE_NAME)
