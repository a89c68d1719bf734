"""Telling pods that wait for what no node has: kube-scheduler does not ask an extender about them.

Every extender looks, and all write the same: an Event has its name from the pod and the reason.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.clock import utc_now
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.follow import Clock
from gpushare_core.kube.paths import PODS, events
from gpushare_extender.decide.unserved_pods import Remark, read_waiting, remark
from gpushare_extender.ledger.ledger import Ledger

UNPLACED = "spec.nodeName=,status.phase=Pending"
LOOK_SECONDS = 20.0
"""Between two looks at all pods that wait."""
PAGE, PAGE_SECONDS = 100, 1.0
"""So many pods are read at once, and so long nothing is read then: there can be tens of thousands."""
MOST_EVENTS = 20
"""Of one page: whoever makes thousands of such pods need not be told of each."""
AGAIN_SECONDS = 1800.0
"""An Event is written again after that: API servers forget them after an hour."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class UnservedPods:
    """Looks at all pods without a node, now and then."""

    client: KubeClient
    ledger: Ledger
    now: Callable[[], datetime] = utc_now
    clock: Clock = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _told: dict[tuple[str, str], float] = field(default_factory=dict, init=False)
    """UID and reason -> when."""

    async def run(self) -> None:
        """Never returns."""
        while True:
            await self.sleep(LOOK_SECONDS)
            try:
                await self.look()
            except (ApiError, UnreachableError) as error:
                _log.warning("cannot see which pods wait: %s", error)

    async def look(self) -> None:
        """Tells those that have not been told lately. Raises ``ApiError`` or ``UnreachableError``."""
        now = self.clock()
        self._told = {key: at for key, at in self._told.items() if now - at < AGAIN_SECONDS}
        async for page in self.client.pages(PODS, limit=PAGE, field_selector=UNPLACED):
            waiting = list(read_waiting(page.items))
            biggest = self.ledger.biggest() if waiting else {}
            due = [each for pod in waiting if (each := remark(pod, biggest)) and self._is_due(each)]
            for each in due[:MOST_EVENTS]:
                await self._tell(each)
            await self.sleep(PAGE_SECONDS)

    def _is_due(self, told: Remark) -> bool:
        return (told.pod.uid, told.reason) not in self._told

    async def _tell(self, told: Remark) -> None:
        self._told[told.pod.uid, told.reason] = self.clock()
        try:
            await self.client.create(events(told.pod.namespace), told.to_event(self.now()))
        except ApiError as error:
            # A conflict: another extender has written it, or this one has before it was restarted.
            if not error.is_conflict:
                _log.warning("no Event: %s (%s)", told.note, error, extra={"pod": str(told.pod)})
