"""The real extender without HTTP: kube-scheduler calls it directly."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec
from tests.fakes.book_readings import ledger_books
from tests.simulation.network import SimulatedClient
from tests.simulation.virtual_time import now, seconds

from gpushare_core.api.names import NAMESPACE
from gpushare_core.audit.records import LedgerRecord
from gpushare_core.placement.requests import read_request
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json
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

HTTP_TIMEOUT = 5.0
"""Seconds after which kube-scheduler gives an extender up."""


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

    def place(self, pod: Json) -> Callable[[], Awaitable[str]] | None:
        """Returns what binds ``pod``, with an error message, empty on success; None where it fits no node."""
        metadata, ledger = pod["metadata"], self.ledger
        request = read_request(msgspec.json.decode(msgspec.json.encode(pod["spec"])), ledger.resources)
        names = ledger.node_names()
        passing = filter_nodes(ledger, names, uid=metadata["uid"], request=request).passing
        if not (passing and request.resources):
            return None
        scores = prioritize_nodes(ledger, passing, request.resources[0])
        node = max(passing, key=lambda name: scores[name])
        reference = PodReference(metadata["namespace"], metadata["name"], metadata["uid"])
        return lambda: self._bind(reference, node)

    async def _bind(self, pod: PodReference, node: str) -> str:
        with suppress(TimeoutError):
            async with asyncio.timeout(HTTP_TIMEOUT):
                return await asyncio.shield(asyncio.ensure_future(self.binder.bind(pod, node)))
        return "the extender did not answer"

    def records(self) -> Mapping[str, LedgerRecord]:
        """Returns what it counts, by node."""
        return ledger_books(self.ledger)

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
