"""Writes Events for pods that wait for what no node has: kube-scheduler does not ask an extender about them.

All extenders do so and write the same Event: its name comes from the pod and the reason.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.kube.paths import events
from gpushare_core.process.clock import utc_now
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.cluster.paced_pods import PacedPods
from gpushare_extender.decide.waiting.unserved_pods import Remark, read_waiting, remark

UNPLACED = "spec.nodeName=,status.phase=Pending"
"""Field selector."""
MAX_EVENTS = 20
"""For one page of pods: whoever makes thousands of such pods need not hear of each."""
AGAIN_SECONDS = 1800.0
"""Until an Event is written again: API servers delete Events after an hour."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class UnservedPods:
    """Looks at all pods without a node, now and then."""

    client: KubeClient
    ledger: Ledger
    pods: PacedPods
    now: Callable[[], datetime] = utc_now
    _written: dict[tuple[str, str], float] = field(default_factory=dict, init=False)
    """UID and reason -> when the Event was written."""

    async def run(self) -> None:
        await self.pods.keep_looking(self.look, "which pods wait")

    async def look(self) -> None:
        """Writes the Events that are due. Raises ``ApiError`` or ``UnreachableError``."""
        now = self.pods.clock()
        self._written = {key: at for key, at in self._written.items() if now - at < AGAIN_SECONDS}
        async for items in self.pods.pages(UNPLACED):
            waiting = list(read_waiting(items))
            biggest = self.ledger.biggest() if waiting else {}
            remarks = [found for pod in waiting if (found := remark(pod, biggest))]
            due = [found for found in remarks if (found.pod.uid, found.reason) not in self._written]
            for found in due[:MAX_EVENTS]:
                await self._write(found)

    async def _write(self, found: Remark) -> None:
        try:
            await self.client.create(events(found.pod.namespace), found.to_event(self.now()))
        except ApiError as error:
            # A conflict: another extender has written it, or this one before it was restarted.
            if not error.is_conflict:
                _log.warning(
                    "cannot write the Event %r: %s", found.note, error, extra={"pod": str(found.pod)}
                )
        self._written[found.pod.uid, found.reason] = self.pods.clock()
