"""Renews the Lease by which this plugin makes known that it works."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from gpushare_core.api.plugin_heartbeat import RENEW_SECONDS, heartbeat_lease, lease_name
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import lease_path, leases
from gpushare_plugin.state import PluginState

SOON = 0.5
"""Seconds between two looks for a GPUShareNode, without which there is no Lease. The Lease comes as early as
the first status: a plugin without one counts as an earlier version, and its status is trusted."""
EARLIEST = 0.8
"""Of the period, at random, so that thousands of plugins that start together do not stay together."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeLease:
    """The Lease in ``namespace``."""

    state: PluginState
    client: KubeClient
    namespace: str
    serves: Callable[[], bool]
    """Of two plugins of a node only the one that serves it renews the Lease."""
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def run(self) -> None:
        while True:
            share_node = self.state.share_node
            if share_node is None or not self.serves():
                await self.sleep(SOON)
                continue
            try:
                await self._write(share_node.metadata.uid)
            except (ApiError, UnreachableError) as error:  # of three renewals two are enough
                _log.warning("cannot renew the Lease %s: %s", lease_name(self.state.name), error)
            await self.sleep(RENEW_SECONDS * random.uniform(EARLIEST, 1.0))  # noqa: S311  no secret

    async def _write(self, uid: str) -> None:
        lease = heartbeat_lease(self.state.name, uid, self.now())
        try:
            await self.client.merge(lease_path(self.namespace, lease["metadata"]["name"]), lease)
        except ApiError as error:
            if not error.is_not_found:
                raise
            await self.client.create(leases(self.namespace), lease)
