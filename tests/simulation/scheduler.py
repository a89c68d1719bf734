"""kube-scheduler, as far as an extender sees it: one pod after the other, with binds in parallel."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
from tests.simulation.api_server import ApiServer
from tests.simulation.extender import SimulatedExtender
from tests.simulation.virtual_time import seconds

from gpushare_core.placement.requests import read_request
from gpushare_core.scheduling.fit.candidates import prioritize_nodes
from gpushare_core.scheduling.fit.filter import filter_nodes
from gpushare_core.scheduling.objects.pod_reference import PodReference
from gpushare_core.text.json_object import Json

HTTP_TIMEOUT = 5.0
"""Seconds after which kube-scheduler gives an extender up."""
MAX_BACKOFF = 3.0


@dataclass(slots=True)
class SimulatedScheduler:
    """The leader; which extender it asks follows from where it runs."""

    server: ApiServer
    extenders: dict[str, SimulatedExtender]
    dice: random.Random
    asks: str
    binds: dict[str, "asyncio.Task[None]"] = field(default_factory=dict)
    """By pod UID."""
    refused: dict[str, tuple[int, float]] = field(default_factory=dict)
    """Pod UID -> refusals in a row, and when it is tried again."""
    _running: "asyncio.Task[None] | None" = None

    def start(self) -> None:
        self._running = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        tasks = [*self.binds.values(), *([self._running] if self._running else [])]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task

    def check(self) -> None:
        if self._running is not None and self._running.done():
            self._running.result()

    def would_try(self, pod: Json) -> bool:
        """Whether the pod may still be placed: it has not been refused several times in a row."""
        return self.refused.get(pod["metadata"]["uid"], (0, 0.0))[0] < 3

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self.dice.uniform(0.005, 0.05))
            extender = self.extenders[self.asks]
            if extender.is_ready:
                for pod in [*self._pending()]:
                    self._schedule(pod, extender)

    def _pending(self) -> list[Json]:
        now = seconds()
        return [
            pod
            for pod in self.server.pods()
            if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
            if pod["metadata"]["uid"] not in self.binds
            if self.refused.get(pod["metadata"]["uid"], (0, 0.0))[1] <= now
        ]

    def _schedule(self, pod: Json, extender: SimulatedExtender) -> None:
        metadata, ledger = pod["metadata"], extender.ledger
        request = read_request(msgspec.json.decode(msgspec.json.encode(pod["spec"])), ledger.resources)
        names = ledger.node_names()
        passing = filter_nodes(ledger, names, uid=metadata["uid"], request=request).passing
        if not (passing and request.resources):
            self._refuse(metadata["uid"])
            return
        scores = prioritize_nodes(ledger, passing, request.resources[0])
        node = max(passing, key=lambda name: scores[name])
        reference = PodReference(metadata["namespace"], metadata["name"], metadata["uid"])
        self.binds[metadata["uid"]] = asyncio.ensure_future(self._bind(reference, node, extender))

    def _refuse(self, uid: str) -> None:
        count = self.refused.get(uid, (0, 0.0))[0] + 1
        pause = min(MAX_BACKOFF, 0.2 * 2**count) * self.dice.uniform(0.5, 1.0)
        self.refused[uid] = (count, seconds() + pause)

    async def _bind(self, pod: PodReference, node: str, extender: SimulatedExtender) -> None:
        problem = "the extender did not answer"
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(HTTP_TIMEOUT):
                    problem = await asyncio.shield(asyncio.ensure_future(extender.binder.bind(pod, node)))
        finally:
            self.binds.pop(pod.uid, None)
            if problem:
                self._refuse(pod.uid)
            else:
                self.refused.pop(pod.uid, None)
