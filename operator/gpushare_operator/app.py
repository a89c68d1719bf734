"""The running operator: wires cache, client, queue and reconciler together and gives kopf its handlers."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import kopf

from gpushare_core.api.names import FIELD_MANAGER
from gpushare_core.clock import utc_now
from gpushare_core.json_object import Json
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.credentials import Credentials
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.metrics import new_registry
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.kinds import Kind
from gpushare_operator.cluster.kopf_events import EndlessBackoff, configure, register_handlers
from gpushare_operator.desired.names import Installation
from gpushare_operator.health_server import HealthServer, StalledError
from gpushare_operator.metrics import OperatorMetrics, show_figures
from gpushare_operator.reconcile import RESYNC, RESYNC_SECONDS, SCHEDULERS, Reconciler
from gpushare_operator.work_queue import WorkQueue

CALL_TIMEOUT = 20.0
"""Seconds for one call to the API server."""
STALLED_SECONDS = 300.0
"""Without a sign of life of the queue, after which the process counts as dead."""
RELIST_DELAY = 5.0
"""Seconds after which a list that kopf made is followed by one of our own."""

_log = logging.getLogger(__name__)


class App:
    """One operator process. Its parts exist from the beginning; they run between startup and cleanup."""

    def __init__(
        self, installation: Installation, credentials: Credentials, kubeconfig: Path | None = None
    ) -> None:
        self._kubeconfig = kubeconfig
        self._client = KubeClient(credentials, timeout=CALL_TIMEOUT, field_manager=FIELD_MANAGER)
        self._cache = Cache()
        self._queue = WorkQueue(clock=time.monotonic)
        self._reconciler = Reconciler(
            api=self._client,
            cache=self._cache,
            installation=installation,
            now=utc_now,
            enqueue=self._queue.add,
        )
        self._running = AsyncExitStack()
        registry = new_registry("gpushare-operator")
        self._metrics = OperatorMetrics(registry)
        show_figures(registry, self._queue, lambda: self._cache.snapshot().policies.values())
        self.health = HealthServer(self.probe, registry)

    def registry(self) -> kopf.OperatorRegistry:
        """Returns all of the operator's handlers."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(self._login)
        kopf.on.startup(registry=registry, id="start")(self._start)
        kopf.on.cleanup(registry=registry, id="stop")(self._stop)
        register_handlers(registry, self._observe)
        return registry

    async def probe(self) -> float:
        """Returns the seconds since the queue's last sign of life.

        Raises:
            StalledError: there is none any more.
        """
        if not self._queue.is_running:
            raise StalledError("the queue has stopped")
        silent = time.monotonic() - self._queue.last_beat
        if silent > STALLED_SECONDS:
            raise StalledError(f"the queue has been stuck for {silent:.0f} s")
        return silent

    def _observe(self, kind: Kind[Any], event: str | None, body: Json) -> None:
        """Takes over one watch event."""
        self._metrics.observed(kind.plural, event)
        if event is None:
            # kopf has listed anew, so it may have missed that something vanished.
            self._queue.add(RESYNC, delay=RELIST_DELAY)
        update = self._cache.forget if event == "DELETED" else self._cache.observe
        if update(kind, body):
            self._reconciler.enqueue_all()

    async def _login(self, **keywords: Any) -> kopf.ConnectionInfo | None:
        if self._kubeconfig:
            return kopf.login_with_kubeconfig(**keywords)
        # By the address in the environment; kopf's own way needs the cluster's DNS.
        return await kopf.login_via_async_client(**keywords)

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings)
        async with AsyncExitStack() as starting:  # kopf tries a start that failed again, from the beginning
            await starting.enter_async_context(self._client)
            await _until_it_succeeds(self._reconciler.resync)
            self._queue.add(RESYNC, delay=RESYNC_SECONDS)
            self._queue.add(SCHEDULERS)
            worker = asyncio.create_task(
                self._queue.run(self._metrics.measured(self._reconciler.work)), name="queue"
            )
            starting.push_async_callback(_cancel, worker)
            self._running = starting.pop_all()

    async def _stop(self, **_: Any) -> None:
        await self._running.aclose()


async def _until_it_succeeds(call: Callable[[], Awaitable[None]]) -> None:
    """Repeats ``call``: kopf looks only once which kinds there are, and the server has to work by then."""
    for delay in EndlessBackoff():
        try:
            await call()
        except (ApiError, UnreachableError) as error:
            _log.warning("cannot read the cluster yet, again in %.1f s: %s", delay, error)
            await asyncio.sleep(delay)
        else:
            break


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
