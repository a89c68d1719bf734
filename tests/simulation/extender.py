"""The real extender without HTTP: kube-scheduler calls it directly."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.network import SimulatedClient
from tests.simulation.virtual_time import now, seconds

from gpushare_core.api.names import NAMESPACE
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_extender.bind.binder import Binder
from gpushare_extender.bind.deadlines import BindTiming
from gpushare_extender.bind.lease import BindLease
from gpushare_extender.bind.node_pauses import NodePauses
from gpushare_extender.bind.stale_reservations import StaleReservations
from gpushare_extender.cluster.watchers import (
    Watch,
    WatchHealth,
    free_unreleased_pods,
    watch_pods,
    watch_share_nodes,
)


def virtual_timing() -> BindTiming:
    return BindTiming(clock=seconds, now=now, sleep=asyncio.sleep)


@dataclass(slots=True)
class SimulatedExtender:
    """One process, with all that keeps its ledger true."""

    client: SimulatedClient
    identity: str
    ledger: Ledger = field(init=False)
    binder: Binder = field(init=False)
    healths: tuple[WatchHealth, WatchHealth] = field(init=False)
    tasks: list["asyncio.Task[Any]"] = field(default_factory=list)
    starts: int = 0

    def start(self) -> None:
        if self.tasks:
            return
        self.starts += 1
        client, timing, ledger = self.client, virtual_timing(), Ledger()
        pods, share_nodes = WatchHealth("pods", seconds), WatchHealth("gpusharenodes", seconds)
        pauses = NodePauses(client, ledger, timing)
        watches = (
            Watch(lambda: watch_pods(client, ledger, pods, pauses.gone), pods),
            Watch(lambda: watch_share_nodes(client, ledger, share_nodes, pauses.reported), share_nodes),
        )
        identity = f"{self.identity}-{self.starts}"
        lease = BindLease(client, NAMESPACE, identity, _read_again(watches), timing=timing)
        self.ledger, self.healths = ledger, (pods, share_nodes)
        self.binder = Binder(client, ledger, lease.hold, timing, bound=pauses.bound)
        lease.in_use = self.binder.may_be_binding
        parts: list[Coroutine[Any, Any, None]] = [
            *(watch.run() for watch in watches),
            lease.keep(),
            pauses.end_in_time(),
            free_unreleased_pods(ledger, seconds, asyncio.sleep),
            StaleReservations(client, ledger, timing).release(),
        ]
        self.tasks = [asyncio.ensure_future(part) for part in parts]

    async def kill(self) -> None:
        """As by SIGKILL: Bindings on their way still arrive."""
        self.check()
        binds = [bind.task for bind in self.binder._tasks.values()] if self.tasks else []
        tasks, self.tasks = [*self.tasks, *binds], []
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    @property
    def is_ready(self) -> bool:
        return bool(self.tasks) and all(health.listed for health in self.healths)

    def check(self) -> None:
        """Raises what ended one of its parts, if it ended by itself."""
        for task in self.tasks:
            if task.done():
                task.result()


def _read_again(watches: tuple[Watch, ...]) -> Callable[[], Awaitable[None]]:
    async def read() -> None:
        await asyncio.gather(*(watch.read_again() for watch in watches))

    return read
