"""Which of several operators is at work: the holder of the Lease. The others stand by.

So that no two operators write at the same time, a write is sent only while the Lease lasts for twice the time
that a write may take: once until it is sent or given up here, once until the API server has carried it out or
given it up there.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from types import TracebackType

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.lease_holder import LeaseHolder, NotHeldError, UnknownHolderError
from gpushare_core.kube.request import ApiRequest
from gpushare_core.process.clock import steady_seconds
from gpushare_core.text.json_object import Json

LEASE_NAME = "gpushare-operator"
LEASE_SECONDS = 30
"""By default. So long after one operator has vanished another takes over."""
FEWEST_LEASE_SECONDS = 6
"""With less a busy API server answers too late."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """In seconds, all derived from the Lease's duration."""

    lease: int = LEASE_SECONDS

    @property
    def renew(self) -> float:
        """Between two renewals: one may fail, and writes go on until the next."""
        return self.lease / 6

    @property
    def poll(self) -> float:
        """Between two readings of another operator's Lease."""
        return self.lease / 15

    @property
    def write(self) -> float:
        """For one write: until it is sent or given up, and again until it was carried out or given up."""
        return self.lease / 3

    @property
    def fence(self) -> float:
        """The Lease has to last so long for a write to be sent."""
        return 2 * self.write


class LeadershipLostError(Exception):
    """The Lease has run out, or is another operator's: this process has to end."""


@dataclass(slots=True)
class Leadership:
    """Whether this operator may write. ``client``: for the Lease, which must not wait for other calls."""

    client: KubeClient
    lease: LeaseHolder
    times: LeaseTimes
    clock: Callable[[], float] = steady_seconds
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    waits_for: str = field(default="", init=False)
    """Why it stands by, for people; empty once it is at work."""
    can_take_over: bool = field(default=False, init=False)
    """While it stands by: whether it may read the Lease. Otherwise it waits for ever."""
    unclear_until: float = field(default=float("-inf"), init=False)
    """Until then a write without an answer may still take effect."""
    _is_lost: bool = field(default=False, init=False)

    @classmethod
    def of(
        cls, credentials: Credentials, namespace: str, *, identity: str, times: LeaseTimes | None = None
    ) -> "Leadership":
        times = times or LeaseTimes()
        client = KubeClient(credentials, connections=1)
        lease = LeaseHolder(
            client=client,
            namespace=namespace,
            name=LEASE_NAME,
            identity=identity,
            program="operator",
            does="is at work",
            seconds=times.lease,
            call_seconds=times.renew,
        )
        return cls(client, lease, times)

    @property
    def may_write(self) -> bool:
        """Whether a write that begins now ends before another operator can be at work."""
        return self.is_at_work and self.lease.lasts(self.times.fence)

    @property
    def is_at_work(self) -> bool:
        return bool(self.lease.holding) and not self.waits_for and not self._is_lost

    async def win(self) -> None:
        """Returns once the Lease is ours."""
        self.waits_for = "the Lease was not read yet"
        while self.waits_for:
            try:
                await self.lease.ensure(self.times.lease - self.times.renew)
                self.waits_for = ""
            except NotHeldError as error:
                self.can_take_over = not isinstance(error, UnknownHolderError)
                self._wait_for(str(error))
                await self.sleep(self.times.poll)

    async def keep(self) -> None:
        """Renews the Lease until it raises LeadershipLostError: another operator may be at work."""
        won = self.lease.holding
        try:
            while self.lease.holding == won:
                await self.sleep(self.times.renew)
                await self._renew()
        finally:
            self._is_lost = True
        raise LeadershipLostError("another operator was at work meanwhile")

    async def _renew(self) -> None:
        try:
            await self.lease.ensure(self.times.lease - self.times.renew / 2)
        except NotHeldError as error:
            _log.warning("the Lease %s was not renewed: %s", LEASE_NAME, error)
            if not self.lease.lasts(self.times.renew):
                raise LeadershipLostError(str(error)) from error

    async def give_up(self) -> None:
        """Lets the next operator begin at once, unless a write may still take effect."""
        if self.clock() < self.unclear_until:
            _log.warning("keeping the Lease until it expires, because the outcome of a write is unknown")
            return
        try:
            await self.lease.release()
        except NotHeldError as error:
            _log.warning("the next operator has to wait until the Lease has expired: %s", error)

    def _wait_for(self, reason: str) -> None:
        """Logs a reason once for each holder: the time that is left differs at each reading."""
        if reason.split(":")[0] != self.waits_for.split(":")[0]:
            _log.info("standing by: %s", reason)
        self.waits_for = reason


class LeaderClient(KubeClient):
    """Sends writes only while ``leadership`` lasts; otherwise it raises ``NotSentError``.

    A write that has begun goes on: a cancelled caller does not wait for its end, closing the client does.
    """

    def __init__(
        self, credentials: Credentials, leadership: Leadership, *, timeout: float, field_manager: str
    ) -> None:
        super().__init__(credentials, timeout=timeout, field_manager=field_manager)
        self._leadership = leadership
        self._under_way: set[asyncio.Task[Json]] = set()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=self._leadership.times.write)
        await super().__aexit__(kind, error, trace)

    async def send(self, request: ApiRequest) -> Json:
        if request.method == "GET":
            return await super().send(request)
        task = asyncio.create_task(self._write(request))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def _write(self, request: ApiRequest) -> Json:
        seconds, begun = self._leadership.times.write, self._leadership.clock()
        params: Mapping[str, str] = {**request.params, "timeout": f"{seconds:g}s"}
        if not self._leadership.may_write:
            raise NotSentError(f"{request}: the Lease was not renewed, another operator may be at work")
        try:
            return await super().send(replace(request, params=params, timeout=seconds))
        except (ApiError, UnreachableError, asyncio.CancelledError) as error:
            if _may_take_effect(error):
                self._leadership.unclear_until = begun + self._leadership.times.fence
            raise

    def _ended(self, task: "asyncio.Task[Json]") -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be cancelled


def _may_take_effect(error: BaseException) -> bool:
    """Returns whether a write that ended with ``error`` may still be carried out. After a 504, too: the store
    may have it by then, or a proxy gave the server up."""
    if isinstance(error, ApiError):
        return error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return not isinstance(error, NotSentError)
