"""Takes a Lease, renews it, gives it back, and knows for how long it is surely ours."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.lease import Lease, LeaseObserver, LeaseState, held_lease, released_lease
from gpushare_core.kube.paths import lease_path
from gpushare_core.kube.request import ApiRequest
from gpushare_core.process.clock import steady_seconds, utc_now
from gpushare_core.text.json_object import Json

_log = logging.getLogger(__name__)


class NotHeldError(Exception):
    """Another process may hold the Lease; the text says why, for people."""


class ChangedMeanwhileError(NotHeldError):
    """Somebody wrote the Lease after we had read it."""


class UnknownHolderError(NotHeldError):
    """The Lease could not be read or written, so it cannot become ours."""


@dataclass(slots=True, kw_only=True)
class LeaseHolder:
    """The Lease ``name`` in ``namespace``, for ``identity``. Callers make one call at a time.

    Messages name the holder by ``program`` and what it ``does``: "the extender X answers binds".
    """

    client: KubeClient
    namespace: str
    name: str
    identity: str
    program: str
    does: str
    seconds: int
    """Duration after a renewal."""
    call_seconds: float
    """Timeout of one request."""
    clock: Callable[[], float] = steady_seconds
    """A clock that goes on while the machine is suspended: for other processes the Lease expires
    meanwhile."""
    now: Callable[[], datetime] = utc_now
    holding: int = field(default=0, init=False)
    """Counts how often the Lease was taken after another process may have had it."""
    _valid_until: float = field(default=float("-inf"), init=False)
    """By our clock, counted from before a renewal was sent: for other processes it began no earlier."""
    _written: LeaseState | None = field(default=None, init=False)
    """The Lease as we wrote it last."""
    _observer: LeaseObserver = field(init=False)

    def __post_init__(self) -> None:
        self._observer = LeaseObserver(self.identity, self.seconds)

    @property
    def is_held(self) -> bool:
        """Whether the Lease was ours when we wrote it last, however long ago."""
        return self._written is not None and self._written.holder == self.identity

    def lasts(self, seconds: float) -> bool:
        """Returns whether no other process can take the Lease within ``seconds`` from now."""
        return self._valid_until - self.clock() >= seconds

    async def ensure(self, seconds: float) -> None:
        """Takes or renews the Lease unless it lasts for ``seconds``.

        Raises:
            NotHeldError: another process holds it, or it could not be read or written.
        """
        if self.lasts(seconds):
            return
        try:
            await self._take(await self.read())
        except ChangedMeanwhileError:
            await self._take(await self.read())

    async def read(self) -> LeaseState | None:
        """Returns the Lease; None when there is none. Raises ``NotHeldError`` when it could not be read."""
        state = None
        try:
            state = await self._send(ApiRequest(path=self._path, timeout=self.call_seconds))
        except ApiError as error:
            if not error.is_not_found:
                raise UnknownHolderError(f"cannot read the Lease {self.name}: {error}") from error
        self._observer.observe(state, now=self.clock())
        return state

    async def release(self) -> None:
        """Gives the Lease back if it is ours: from this call on it does not last.

        Raises:
            NotHeldError: it could not be read or written, and has to expire.
        """
        if self._written is None or not self.is_held:
            return
        self._valid_until = float("-inf")
        present = await self.read()
        if present is None or present.holding != self._written.holding:
            self._written = None
            return
        self._written = await self._write(released_lease(present, name=self.name, now=self.now()))

    async def _take(self, before: LeaseState | None) -> None:
        self._raise_if_relied_on(before)
        sent = self.clock()
        if before is None or self._written is None or before.holding != self._written.holding:
            self.holding += 1
            _log.info("taking over the Lease %s from %s", self.name, (before and before.holder) or "nobody")
        lease = held_lease(
            before, name=self.name, identity=self.identity, seconds=self.seconds, now=self.now()
        )
        self._written = await self._write(lease)
        self._valid_until = sent + self.seconds

    def _raise_if_relied_on(self, present: LeaseState | None) -> None:
        """Raises ``NotHeldError`` while another process may rely on the Lease."""
        if present is None and self.lasts(0.0):
            return  # deleted while it was ours
        left = self._observer.seconds_left(now=self.clock())
        if not left:
            return
        if present is None or not present.holder:
            what = "deleted" if present is None else "emptied by somebody while it was held"
            raise NotHeldError(
                f"the Lease {self.name} was {what}: this {self.program} may take it in {left:.0f} s, when "
                "nobody relies on it any more"
            )
        self._valid_until = float("-inf")
        raise NotHeldError(
            f"the {self.program} {present.holder} {self.does}: this {self.program} takes over in {left:.0f} s"
            f", or as soon as the Lease {self.name} is released"
        )

    async def _write(self, lease: Json) -> LeaseState:
        """A PUT also creates a missing Lease: that right can be given for a single name."""
        request = ApiRequest(method="PUT", path=self._path, body=lease, timeout=self.call_seconds)
        try:
            written = await self._send(request)
        except ApiError as error:
            text = f"cannot write the Lease {self.name}: {error}"
            if error.is_conflict:
                raise ChangedMeanwhileError(text) from error
            if error.is_final:
                self._written, self._valid_until = None, float("-inf")
            raise UnknownHolderError(text) from error
        self._observer.observe(written, now=self.clock())
        return written

    async def _send(self, request: ApiRequest) -> LeaseState:
        try:
            return (await self.client.read(request, shape=Lease)).state()
        except UnreachableError as error:
            raise UnknownHolderError(f"cannot tell which {self.program} {self.does}: {error}") from error

    @property
    def _path(self) -> str:
        return lease_path(self.namespace, self.name)
