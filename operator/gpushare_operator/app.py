"""The running operator: wires cache, client, queue and reconciler together and gives kopf its handlers."""

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
from gpushare_core.kube.credentials import Credentials
from gpushare_core.process.clock import utc_now
from gpushare_core.process.metrics import new_registry
from gpushare_operator.cluster.cache import Cache
from gpushare_operator.cluster.watches import Watches
from gpushare_operator.desired.names import Installation
from gpushare_operator.process.health import StalledError, health_pages
from gpushare_operator.process.kopf_frame import configure
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
"""Several policies that are applied one after the other edit kube-scheduler once."""
STALLED_SECONDS = 300.0
"""Without a sign of life of queue or watches, after which the process counts as dead."""


class App:
    """One operator process. Its parts exist from the beginning; they run between startup and cleanup."""

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
        self._reconciler = PolicyReconciler(
            api=self._client,
            cache=self._cache,
            installation=installation,
            now=utc_now,
            enqueue=self._queue.add,
            enqueue_later=partial(self._queue.add, delay=FIGURES_SECONDS),
            log_level=log_level,
            scheduler_debounce=Debounce(SCHEDULER_DEBOUNCE_SECONDS, time.monotonic),
        )
        self._running = AsyncExitStack()
        self._is_starting = False
        self._registry = registry = new_registry("gpushare-operator")
        self._metrics = OperatorMetrics(registry)
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
        """Returns all of the operator's handlers."""
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry, id="login")(self._login)
        kopf.on.startup(registry=registry, id="start")(self._start)
        kopf.on.cleanup(registry=registry, id="stop")(self._stop)
        return registry

    def health_server(self, port: int, *, host: str | None = None) -> HealthServer:
        """Returns what serves this operator's health; ``host`` as in ``HealthServer``."""
        pages = health_pages(probe=self.probe, readiness=self.readiness, registry=self._registry)
        return HealthServer(port, pages, host=host)

    def probe(self) -> float:
        """Returns the seconds since the last sign of life of queue and watches, whichever is silent longer.

        A watch that the API server refuses is tried again and again, which is a sign of life.

        Raises:
            StalledError: the last sign was too long ago.
        """
        if self.leadership.waits_for:
            return 0.0
        silent = _recent(self._watches.silence, "a watch")
        if self._is_starting:
            return silent
        if not self._queue.is_running:
            raise StalledError("the queue has stopped")
        return max(silent, _recent(time.monotonic() - self._queue.last_beat, "the queue"))

    def readiness(self) -> str:
        """Returns what the operator is ready for: to work, or to take over.

        Raises:
            StalledError: the operator has not read the cluster yet, or is stopping, or could not take over.
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
        # By the address in the environment; kopf's own way needs the cluster's DNS.
        return await kopf.login_via_async_client(**keywords)

    async def _start(self, settings: kopf.OperatorSettings, **_: Any) -> None:
        configure(settings)
        self._is_starting = True
        async with AsyncExitStack() as starting:  # kopf tries a start that failed again, from the beginning
            await starting.enter_async_context(self._client)
            _run(starting, self._watches.run(), name="watches")
            await self._watches.until_read()
            self._reconciler.enqueue_all()
            self._queue.add(RESYNC, delay=RESYNC_SECONDS)
            self._queue.add(HEARTBEATS)
            # Before all that was asked for while the cluster was read: statuses speak of what it finds.
            self._queue.add(SCHEDULERS, delay=float("-inf"))
            _run(starting, self._queue.run(self._metrics.measured(self._reconciler.work)), name="queue")
            self._running = starting.pop_all()
        await asyncio.sleep(0)  # the queue runs from here on
        self._is_starting = False

    async def _stop(self, **_: Any) -> None:
        await self._running.aclose()


def _recent(silent: float, what: str) -> float:
    if silent > STALLED_SECONDS:
        raise StalledError(f"{what} has been stuck for {silent:.0f} s")
    return silent


def _run(until: AsyncExitStack, work: Coroutine[Any, Any, None], *, name: str) -> None:
    """Lets ``work`` run until ``until`` closes."""
    until.push_async_callback(_cancel, asyncio.create_task(work, name=name))


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
