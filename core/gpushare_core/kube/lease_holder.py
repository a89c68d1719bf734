"""Taking a Lease, renewing it, giving it back, and knowing how long it surely is ours."""

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
    """Another process may hold the Lease, or nobody can tell; the text says why, for people."""


class ChangedMeanwhileError(NotHeldError):
    """Somebody wrote the Lease since we read it, be it to take it or only to touch it."""


class UnknownHolderError(NotHeldError):
    """The Lease could not be read or written: without that it never will be ours."""


@dataclass(slots=True, kw_only=True)
class LeaseHolder:
    """The Lease ``name`` in ``namespace``, for ``identity``. One call at a time: the caller sees to that.

    Messages name the holder by ``program`` and what it ``does``: "the extender X answers binds".
    """

    client: KubeClient
    namespace: str
    name: str
    identity: str
    program: str
    does: str
    seconds: int
    """How long it is relied on after a renewal."""
    call_seconds: float
    """For one call."""
    clock: Callable[[], float] = steady_seconds
    """One that goes on while the machine is suspended: for the others the Lease expires meanwhile."""
    now: Callable[[], datetime] = utc_now
    holding: int = field(default=0, init=False)
    """Counts up whenever the Lease is taken and somebody else may have had it since we did."""
    _valid_until: float = field(default=float("-inf"), init=False)
    """By our clock. Counted from before each renewal was sent: it began no earlier for the others."""
    _written: LeaseState | None = field(default=None, init=False)
    """As we wrote it last."""
    _observer: LeaseObserver = field(init=False)

    def __post_init__(self) -> None:
        self._observer = LeaseObserver(self.identity, self.seconds)

    @property
    def is_held(self) -> bool:
        """Whether it was ours when we wrote it last, however long ago."""
        return self._written is not None and self._written.holder == self.identity

    def lasts(self, seconds: float) -> bool:
        """Returns whether nobody else can have the Lease within ``seconds`` from now."""
        return self._valid_until - self.clock() >= seconds

    async def ensure(self, seconds: float) -> None:
        """Returns when the Lease lasts ``seconds``: takes or renews it if it does not.

        Raises:
            NotHeldError: it is somebody else's, or could not be read or written.
        """
        if self.lasts(seconds):
            return
        try:
            await self._take(await self.read())
        except ChangedMeanwhileError:
            await self._take(await self.read())

    async def read(self) -> LeaseState | None:
        """Returns what the API server has; None when there is no such Lease.

        Raises:
            NotHeldError: it could not be read.
        """
        state = None
        try:
            state = await self._send(ApiRequest(path=self._path, timeout=self.call_seconds))
        except ApiError as error:
            if not error.is_not_found:
                raise UnknownHolderError(f"cannot read the Lease {self.name}: {error}") from error
        self._observer.observe(state, now=self.clock())
        return state

    async def release(self) -> None:
        """Gives the Lease back if it is ours: from this call on we do not rely on it.

        Raises:
            NotHeldError: it could not be read or written; it has to expire.
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
        """Raises ``NotHeldError`` while somebody else may rely on the Lease."""
        if present is None and self.lasts(0.0):
            return  # deleted while it was ours
        left = self._observer.seconds_left(now=self.clock())
        if not left:
            return
        if present is None or not present.holder:
            what = "deleted" if present is None else "emptied by somebody while it was held"
            raise NotHeldError(
                f"the Lease {self.name} was {what}: this {self.program} may go on in {left:.0f} s, when "
                "nobody relies on it any more"
            )
        self._valid_until = float("-inf")
        raise NotHeldError(
            f"the {self.program} {present.holder} {self.does}: this {self.program} does so in {left:.0f} s,"
            f" or as soon as the Lease {self.name} is given back"
        )

    # Calls

    async def _write(self, lease: Json) -> LeaseState:
        """A PUT also creates a Lease that is missing: the right to that can be given for one name only."""
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
