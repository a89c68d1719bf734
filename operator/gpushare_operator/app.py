"""The running operator: wires client, cache, queue and reconciler together, and gives kopf its handlers."""

import asyncio
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import kopf

from gpushare_core.api.enums import LogLevel
from gpushare_core.api.names import FIELD_MANAGER
from gpushare_core.health_server import HealthServer
from gpushare_core.kube.backoff import Backoff
from gpushare_core.kube.credentials import Credentials
from gpushare_core.process.clock import utc_now
from gpushare_core.process.metrics import new_registry
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.watches import Watches
from gpushare_operator.desired.names import Installation
from gpushare_operator.evictions import Evictions
from gpushare_operator.process.health import StalledError, health_pages
from gpushare_operator.process.leadership import LeaderClient, Leadership
from gpushare_operator.process.metrics import OperatorMetrics, show_figures
from gpushare_operator.reconcile import (
    FIGURES_SECONDS,
    HEARTBEATS,
    RESYNC,
    RESYNC_SECONDS,
    SCHEDULERS,
    PolicyReconciler,
)
from gpushare_operator.work_queue import Debounce, WorkQueue

CALL_TIMEOUT = 20.0
"""Seconds for one call to the API server."""
SCHEDULER_DEBOUNCE_SECONDS = 3.0
"""Several policies that are applied one after the other lead to one edit of kube-scheduler."""
STALLED_SECONDS = 300.0
"""After so long without a sign of life of queue or watches the process counts as dead."""


class App:
    """One operator process. Its parts run from kopf's startup to its cleanup."""

    def __init__(
        self,
        installation: Installation,
        credentials: Credentials,
        leadership: Leadership,
        *,
        kubeconfig: Path | None = None,
        log_level: str = LogLevel.INFO,
    ) -> None:
        self._kubeconfig = kubeconfig
        self.leadership = leadership
        self._client = LeaderClient(
            credentials, leadership, timeout=CALL_TIMEOUT, field_manager=FIELD_MANAGER
        )
        self._cache = Cache()
        self._queue = WorkQueue(clock=time.monotonic)
        self._registry = registry = new_registry("gpushare-operator")
        self._metrics = OperatorMetrics(registry)
        self._reconciler = PolicyReconciler(
            api=self._client,
            cache=self._cache,
            installation=installation,
            now=utc_now,
            enqueue=self._queue.add,
            enqueue_later=partial(self._queue.add, delay=FIGURES_SECONDS),
            log_level=log_level,
            evictions=Evictions(time.monotonic, self._metrics.attempted),
            scheduler_debounce=Debounce(SCHEDULER_DEBOUNCE_SECONDS, time.monotonic),
        )
        self._running = AsyncExitStack()
        self._is_starting = False
        self._watches = Watches(
            self._client,
            self._cache,
            installation.namespace,
            changed=self._reconciler.enqueue_all,
            figures_changed=self._reconciler.enqueue_figures,
            observed=self._metrics.observed,
        )
        show_figures(
            registry,
            self._queue,
            lambda: self._cache.snapshot().policies.values(),
            is_at_work=lambda: self.leadership.is_at_work,
        )

    def registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(self._login)
        kopf.on.startup(registry=registry, id="start")(self._start)
        kopf.on.cleanup(registry=registry, id="stop")(self._stop)
        return registry

    def health_server(self, port: int, *, host: str | None = None) -> HealthServer:
        """``host``: as in ``HealthServer``."""
        pages = health_pages(probe=self.probe, readiness=self.readiness, registry=self._registry)
        return HealthServer(port, pages, host=host)

    def probe(self) -> float:
        """Returns the seconds since the last sign of life: of the queue or of the watches, the older one.

        Trying a watch again that the API server refuses is a sign of life. Raises StalledError for none.
        """
        if self.leadership.waits_for:
            return 0.0
        age = _recent(self._watches.silence, "a watch")
        if self._is_starting:
            return age
        if not self._queue.is_running:
            raise StalledError("the queue has stopped")
        return max(age, _recent(time.monotonic() - self._queue.last_beat, "the queue"))

    def readiness(self) -> str:
        """Returns what the process is ready for: to work, or to take over.

        Raises StalledError: it has not read the cluster yet, is stopping, or could not take over.
        """
        if self.leadership.waits_for and not self.leadership.can_take_over:
            raise StalledError(self.leadership.waits_for)
        if self.leadership.waits_for:
            return f"standing by: {self.leadership.waits_for}"
        if not self._queue.is_running:
            raise StalledError("the cluster has not been read yet")
        return "at work"

    async def _login(self, **keywords: Any) -> kopf.ConnectionInfo | None:
        if self._kubeconfig:
            return kopf.login_with_kubeconfig(**keywords)
        # By the address in the environment: kopf's own way needs the cluster's DNS.
        return await kopf.login_via_async_client(**keywords)

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        _configure(settings)
        self._is_starting = True
        async with AsyncExitStack() as starting:  # kopf calls this again after a failure
            await starting.enter_async_context(self._client)
            _run(starting, self._watches.run(), name="watches")
            await self._watches.until_read()
            self._reconciler.enqueue_all()
            self._queue.add(RESYNC, delay=RESYNC_SECONDS)
            self._queue.add(HEARTBEATS)
            # Before all keys that the reading of the cluster has enqueued: statuses depend on what it finds.
            self._queue.add(SCHEDULERS, delay=float("-inf"))
            _run(starting, self._queue.run(self._metrics.measured(self._reconciler.work)), name="queue")
            self._running = starting.pop_all()
        await asyncio.sleep(0)  # the queue runs from here on
        self._is_starting = False

    async def _stop(self, **_: Any) -> None:
        await self._running.aclose()


def _configure(settings: kopf.OperatorSettings) -> None:
    """kopf only starts and stops the process: at a watch that is refused or has expired it would end it."""
    settings.posting.enabled = False
    settings.peering.standalone = True
    # Otherwise kopf wants to watch all CRDs and namespaces.
    settings.scanning.disabled = True
    # It gives up and exits when its delays run out.
    settings.networking.error_backoffs = Backoff(first=0.5, most=30.0)
    settings.networking.request_timeout = 60.0
    settings.networking.connect_timeout = 10.0
    settings.process.ultimate_exiting_timeout = 20.0


def _recent(age: float, what: str) -> float:
    if age > STALLED_SECONDS:
        raise StalledError(f"{what} has been stuck for {age:.0f} s")
    return age


def _run(until: AsyncExitStack, work: Coroutine[Any, Any, None], *, name: str) -> None:
    """Runs ``work`` until ``until`` closes."""
    until.push_async_callback(_cancel, asyncio.create_task(work, name=name))


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
