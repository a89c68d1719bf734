"""Writes Events about pods."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import events
from gpushare_plugin.decide.held.pod_events import PodEvent

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventWriter:
    """Logs every Event as well: one that cannot be written is in the log alone."""

    client: KubeClient
    node: str
    now: Callable[[], datetime]

    async def write(self, pod_events: Iterable[PodEvent]) -> None:
        """After the first request without a response no more are sent: a round of the plugin waits for
        them."""
        is_unreachable = False
        for event in pod_events:
            level = logging.WARNING if event.warning else logging.INFO
            _log.log(level, "%s: %s", event.reason, event.note, extra={"pod": str(event.pod)})
            if not is_unreachable:
                is_unreachable = not await self._create(event)

    async def _create(self, event: PodEvent) -> bool:
        """Returns whether the API server responded."""
        body = event.to_json(self.node, self.now())
        try:
            await self.client.create(events(event.pod.namespace), body)
        except (ApiError, UnreachableError) as error:
            if not (isinstance(error, ApiError) and error.is_conflict):  # a conflict: it was written before
                _log.warning(
                    "cannot write the Event %r: %s", event.note, error, extra={"pod": str(event.pod)}
                )
            return isinstance(error, ApiError)
        return True
