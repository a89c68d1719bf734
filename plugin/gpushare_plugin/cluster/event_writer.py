"""Writes Events on pods."""

import logging
from collections.abc import Callable, Iterable
from datetime import datetime

from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import events
from gpushare_plugin.decide.held.pod_events import PodEvent

_log = logging.getLogger(__name__)


class EventWriter:
    """Each Event is told in the log, too: one that cannot be written is told only there."""

    def __init__(self, client: KubeClient, node: str, *, now: Callable[[], datetime]) -> None:
        self._client = client
        self._node = node
        self._now = now

    async def write(self, pod_events: Iterable[PodEvent]) -> None:
        """An API server that does not answer is asked once: a round of the plugin waits for it."""
        is_away = False
        for event in pod_events:
            level = logging.WARNING if event.warning else logging.INFO
            _log.log(level, "%s: %s", event.reason, event.note, extra={"pod": str(event.pod)})
            if not is_away:
                is_away = not await self._create(event)

    async def _create(self, event: PodEvent) -> bool:
        """Returns whether the API server answered."""
        body = event.to_json(self._node, self._now())
        try:
            await self._client.create(events(event.pod.namespace), body)
        except (ApiError, UnreachableError) as error:
            if not (isinstance(error, ApiError) and error.is_conflict):  # else it was told before
                _log.warning("no Event: %s (%s)", event.note, error, extra={"pod": str(event.pod)})
            return isinstance(error, ApiError)
        return True
