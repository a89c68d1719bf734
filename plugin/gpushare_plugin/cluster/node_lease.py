"""Renews the Lease by which this plugin makes known that it works."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime

from gpushare_core.api.plugin_heartbeat import RENEW_SECONDS, heartbeat_lease, lease_name
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import lease_path, leases
from gpushare_plugin.state import PluginState

SOON = 0.5
"""Seconds between two looks for a GPUShareNode, without which there is nothing to say. A plugin without a
Lease counts as one of an earlier version, and is believed: so it comes as early as the first report."""
EARLIEST = 0.8
"""Of the period, at random: thousands of plugins that start together do not stay together."""

_log = logging.getLogger(__name__)


class NodeLease:
    """The Lease in ``namespace``, while ``serves``: of two plugins of a node the one that serves it."""

    def __init__(
        self,
        state: PluginState,
        client: KubeClient,
        namespace: str,
        *,
        serves: Callable[[], bool],
        now: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._state = state
        self._client = client
        self._namespace = namespace
        self._serves = serves
        self._now = now
        self._sleep = sleep

    async def run(self) -> None:
        """Never returns."""
        while True:
            share_node = self._state.share_node
            if share_node is None or not self._serves():
                await self._sleep(SOON)
                continue
            await self._renew(share_node.metadata.uid)
            await self._sleep(RENEW_SECONDS * random.uniform(EARLIEST, 1.0))  # noqa: S311  no secret

    async def _renew(self, uid: str) -> None:
        """One that could not be written is tried again at the next time: others count on two of three."""
        try:
            await self._write(uid)
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot renew the Lease %s: %s", lease_name(self._state.name), error)

    async def _write(self, uid: str) -> None:
        lease = heartbeat_lease(self._state.name, uid, self._now())
        try:
            await self._client.merge(lease_path(self._namespace, lease["metadata"]["name"]), lease)
        except ApiError as error:
            if not error.is_not_found:
                raise
            await self._client.create(leases(self._namespace), lease)
