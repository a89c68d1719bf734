"""Renews the Lease by which this plugin makes known that it works, and which files of isolation are there."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from gpushare_core.api.names import POLICY_KIND
from gpushare_core.api.plugin_heartbeat import (
    RENEW_SECONDS,
    heartbeat_lease,
    heartbeat_patch,
    lease_name,
    renewal_patch,
)
from gpushare_core.api.share_node import GPUShareNode
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import lease_path, leases
from gpushare_core.text.json_object import Json
from gpushare_plugin.state import PluginState

SOON = 0.5
"""Seconds between two looks for a GPUShareNode, without which there is no Lease unless files of isolation are
on the node. The Lease comes as early as the first status: a plugin without one counts as an earlier version,
and its status is trusted."""
EARLIEST = 0.8
"""Of the period, at random, so that thousands of plugins that start together do not stay together."""

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class NodeLease:
    """The Lease in ``namespace``."""

    state: PluginState
    client: KubeClient
    namespace: str
    serves: Callable[[], bool]
    """Of two plugins of a node only the one that serves it renews the Lease."""
    now: Callable[[], datetime]
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _last: GPUShareNode | None = field(default=None, init=False)
    """The GPUShareNode as it was last: it may be deleted while containers still need files."""
    _says_files: bool | None = field(default=None, init=False)
    """Whether the Lease says that files are there; None while it may say what an earlier process wrote."""
    _backoff: Backoff = field(default_factory=lambda: Backoff(most=RENEW_SECONDS), init=False)

    async def run(self) -> None:
        while True:
            self._last = self.state.share_node or self._last
            if not self._is_due or not self.serves():
                await self.sleep(SOON)
                continue
            self.state.lease_due.clear()
            await self._wait(await self._renew())

    @property
    def _is_due(self) -> bool:
        """Without a GPUShareNode only while files are there, and once more when they are gone."""
        state = self.state
        if state.share_node is not None or not state.isolation_files_known:
            return state.share_node is not None
        return state.isolation_files is not None or self._says_files is not False

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.state.lease_due.wait()

    async def _renew(self) -> float:
        """Returns the seconds until the next renewal."""
        try:
            await self._write()
        except (ApiError, UnreachableError) as error:  # of three renewals two are enough
            _log.warning("cannot renew the Lease %s: %s", lease_name(self.state.name), error)
            if self._says_files is not (self.state.isolation_files is not None):
                return self._backoff.next_delay(self.client.asked_to_wait)
        self._backoff.reset()
        return RENEW_SECONDS * random.uniform(EARLIEST, 1.0)  # noqa: S311  no secret

    async def _write(self) -> None:
        state, last = self.state, self._last
        files, known = state.isolation_files, state.isolation_files_known
        uid, policy = (last.metadata.uid, _policy(last)) if last else ("", None)
        lease = heartbeat_lease(state.name, uid, self.now(), files=files, policy=policy)
        patch = heartbeat_patch(lease) if known else renewal_patch(lease)
        try:
            await self.client.merge(lease_path(self.namespace, lease_name(state.name)), patch)
        except ApiError as error:
            if not error.is_not_found:
                raise
            if last:  # without an owner nothing would ever delete it
                await self.client.create(leases(self.namespace), lease)
        if known:
            self._says_files = files is not None


def _policy(share_node: GPUShareNode) -> Json | None:
    """Returns the reference to the policy, which owns the GPUShareNode."""
    owners = share_node.metadata.owner_references
    return next((owner.to_json() for owner in owners if owner.kind == POLICY_KIND), None)
