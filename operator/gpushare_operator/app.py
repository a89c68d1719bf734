"""The running operator: what holds queue, memory, client and kopf together."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import kopf

from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_operator.cluster.api import connect
from gpushare_operator.cluster.cache import Inventory, Kind
from gpushare_operator.cluster.kopf_events import EndlessPauses, configure, follow
from gpushare_operator.desired.installation import Installation
from gpushare_operator.reconcile import RESYNC, RESYNC_SECONDS, Reconciler
from gpushare_operator.work_queue import WorkQueue

STALLED = 300.0
"""Seconds without a sign of life of the queue after which the process counts as dead."""
RELIST_DELAY = 5.0
"""Seconds after which a list that kopf made is followed by one of our own."""

_log = logging.getLogger(__name__)


class StalledError(Exception):
    """The queue does not work any more: the process has to be started again."""


@dataclass(slots=True)
class Process:
    """One operator process."""

    installation: Installation
    kubeconfig: Path | None
    inventory: Inventory = field(default_factory=Inventory)
    _resources: AsyncExitStack = field(default_factory=AsyncExitStack)
    _reconciler: Reconciler | None = None
    _queue: WorkQueue | None = None
    _worker: asyncio.Task[None] | None = None

    def registry(self) -> kopf.OperatorRegistry:
        """All of the operator's handlers."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(self._login)
        kopf.on.startup(registry=registry, id="start")(self._start)
        kopf.on.cleanup(registry=registry, id="stop")(self._stop)
        kopf.on.probe(registry=registry, id="queue")(self._probe)
        follow(registry, self.observe)
        return registry

    def observe(self, kind: Kind, event: str | None, body: Mapping[str, Any]) -> None:
        """One watch event."""
        if event is None and self._queue:
            # kopf has listed anew, so it may have missed that something vanished.
            self._queue.add(RESYNC, delay=RELIST_DELAY)
        take = self.inventory.forget if event == "DELETED" else self.inventory.observe
        if take(kind, body) and self._reconciler:
            self._reconciler.enqueue_all()

    async def _login(self, **keywords: Any) -> kopf.ConnectionInfo | None:
        if self.kubeconfig:
            return kopf.login_with_kubeconfig(**keywords)
        # By the address in the environment; kopf's own way needs the cluster's DNS.
        return await kopf.login_via_async_client(**keywords)

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings)
        api = await self._resources.enter_async_context(connect(self.kubeconfig))
        self._reconciler = Reconciler(
            api=api,
            inventory=self.inventory,
            installation=self.installation,
            now=lambda: datetime.now(UTC),
            enqueue=lambda key: self._enqueue(key),
        )
        self._queue = WorkQueue(work=self._reconciler.work, clock=time.monotonic)
        await _patiently(self._reconciler.resync)
        self._queue.add(RESYNC, delay=RESYNC_SECONDS)
        self._worker = asyncio.create_task(self._queue.run(), name="queue")

    def _enqueue(self, key: str) -> None:
        if self._queue:
            self._queue.add(key)

    async def _stop(self, **_: Any) -> None:
        if self._worker:
            self._worker.cancel()
            await asyncio.wait([self._worker])
        await self._resources.aclose()

    async def _probe(self, **_: Any) -> float:
        """Seconds since the queue's last sign of life."""
        if self._queue is None or self._worker is None or self._worker.done():
            raise StalledError("the queue has stopped")
        silent = time.monotonic() - self._queue.beaten
        if silent > STALLED:
            raise StalledError(f"the queue has been stuck for {silent:.0f} s")
        return silent


async def _patiently(call: Callable[[], Awaitable[None]]) -> None:
    """Until it succeeds: kopf only looks once, later, which kinds there are."""
    for pause in EndlessPauses():
        try:
            await call()
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot read the cluster yet, again in %.1f s: %s", pause, error)
            await asyncio.sleep(pause)
        else:
            break
