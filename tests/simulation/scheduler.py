"""kube-scheduler, as far as an engine sees it: one pod after the other, with binds in parallel."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol

from tests.simulation.api_server import ApiServer
from tests.simulation.virtual_time import seconds

from gpushare_core.audit.records import LedgerRecord
from gpushare_core.text.json_object import Json

MAX_BACKOFF = 3.0


class Engine(Protocol):
    """What decides where pods go that ask for cards: an extender, or kube-scheduler's plugin."""

    @property
    def is_ready(self) -> bool: ...

    def start(self) -> None: ...

    async def kill(self) -> None:
        """As by SIGKILL: Bindings on their way still arrive."""

    def check(self) -> None:
        """Raises what ended one of its parts, if it ended by itself."""

    def place(self, pod: Json) -> Callable[[], Awaitable[str]] | None:
        """Returns what binds ``pod``, with an error message, empty on success; None where it fits no node."""

    def records(self) -> Mapping[str, LedgerRecord]:
        """Returns what it counts, by node."""


@dataclass(slots=True)
class SimulatedScheduler:
    """The leader; which engine it asks follows from where it runs."""

    server: ApiServer
    engines: Mapping[str, Engine]
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
            engine = self.engines[self.asks]
            if engine.is_ready:
                for pod in [*self._pending()]:
                    self._schedule(pod, engine)

    def _pending(self) -> list[Json]:
        now = seconds()
        return [
            pod
            for pod in self.server.pods()
            if not pod["spec"].get("nodeName") and "deletionTimestamp" not in pod["metadata"]
            if pod["metadata"]["uid"] not in self.binds
            if self.refused.get(pod["metadata"]["uid"], (0, 0.0))[1] <= now
        ]

    def _schedule(self, pod: Json, engine: Engine) -> None:
        uid, bind = pod["metadata"]["uid"], engine.place(pod)
        if bind is None:
            self._refuse(uid)
        else:
            self.binds[uid] = asyncio.ensure_future(self._bind(uid, bind))

    def _refuse(self, uid: str) -> None:
        count = self.refused.get(uid, (0, 0.0))[0] + 1
        pause = min(MAX_BACKOFF, 0.2 * 2**count) * self.dice.uniform(0.5, 1.0)
        self.refused[uid] = (count, seconds() + pause)

    async def _bind(self, uid: str, bind: Callable[[], Awaitable[str]]) -> None:
        problem = "it was not answered"
        try:
            problem = await bind()
        finally:
            self.binds.pop(uid, None)
            if problem:
                self._refuse(uid)
            else:
                self.refused.pop(uid, None)
