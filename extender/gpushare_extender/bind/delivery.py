"""Sending a Binding, and finding out what came of it."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, NotSentError, UnreachableError
from gpushare_core.kube.follow import Backoff
from gpushare_extender.bind.binding import Order, Outcome, judge

ANSWER_SECONDS = 4.0
"""Less than the 5 s after which kube-scheduler gives an extender up by default."""
CALL_SECONDS = 4
SETTLE_SECONDS = 12.0
"""A Binding has taken effect, or never will, so long after it was sent: the API server drops a request
after the ``timeout`` that it carries, ``CALL_SECONDS``."""

_log = logging.getLogger(__name__)


class RefusedError(Exception):
    """The pod is not bound as ordered and will not be; the text says why, for the scheduler's event."""


@dataclass(frozen=True, slots=True)
class Times:
    """Clocks and pauses, replaced in tests. Seconds."""

    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    sleep: Callable[[float], Any] = asyncio.sleep
    answer_within: float = ANSWER_SECONDS
    settle: float = SETTLE_SECONDS


@dataclass(slots=True)
class Delivery:
    """One order on its way to the API server."""

    client: KubeClient
    order: Order
    times: Times
    _doubt_until: float = field(default=0.0, init=False)
    """Until then a Binding sent earlier may still take effect, though the pod looks unbound."""
    _failure: str = field(default="", init=False)

    async def settle(self) -> None:
        """Return once the pod is surely bound as ordered.

        While somebody waits for the answer an unclear failure is also met by sending again: the API server
        binds a pod once. Later it only reads, for the scheduler may have given the node's CPU away.

        Raises:
            RefusedError: it is surely not, and will not be.
        """
        pauses = Backoff(sleep=self.times.sleep)
        answered = self.times.clock() + self.times.answer_within
        while True:
            if await self._send() or await self._is_bound():
                return
            await pauses.pause()
            while self.times.clock() >= answered:
                if await self._is_bound():
                    return
                await pauses.pause()

    async def _send(self) -> bool:
        """Whether the API server says that the pod is bound now."""
        sent = self.times.clock()
        try:
            await self._post()
        except NotSentError as error:
            self._refuse_unless_in_doubt(str(error))
        except UnreachableError as error:
            self._doubt(str(error), sent)
        except ApiError as error:
            self._weigh(error, sent)
        else:
            return True
        return False

    async def _post(self) -> None:
        path = f"{self.order.pod_path}/binding"
        params = {"timeout": f"{CALL_SECONDS}s"}
        await self.client.call(
            "POST", path, body=self.order.binding(), params=params, timeout=float(CALL_SECONDS)
        )

    def _weigh(self, error: ApiError, sent: float) -> None:
        """A conflict needs a look at the pod: an earlier Binding of ours may be what stands in the way."""
        self._failure = str(error)
        if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            self._doubt(str(error), sent)
        elif error.is_final and not error.is_conflict:
            self._refuse_unless_in_doubt(str(error))

    def _doubt(self, failure: str, sent: float) -> None:
        self._failure = failure
        self._doubt_until = sent + self.times.settle

    def _refuse_unless_in_doubt(self, failure: str) -> None:
        self._failure = failure
        if self.times.clock() >= self._doubt_until:
            raise RefusedError(f"the pod was not bound: {failure}")

    async def _is_bound(self) -> bool:
        """Whether the pod is bound as ordered; False also means: not known yet.

        Raises:
            RefusedError: it is surely not, and will not be.
        """
        asked = self.times.clock()
        try:
            outcome = judge(self.order, await self._read())
        except (ApiError, UnreachableError) as error:
            _log.warning(
                "cannot tell yet whether the pod is bound, asking again: %s", error, extra=self._extra
            )
            return False
        if outcome is Outcome.UNBOUND and asked < self._doubt_until:
            return False
        if outcome is not Outcome.BOUND:
            raise RefusedError(f"the pod is {outcome.value}: {self._failure}")
        return True

    async def _read(self) -> dict[str, Any] | None:
        try:
            return await self.client.get(self.order.pod_path)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

    @property
    def _extra(self) -> dict[str, str]:
        return {"pod": self.order.pod, "node": self.order.args.node}
