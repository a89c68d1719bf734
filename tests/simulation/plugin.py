"""The real plugin without its sockets: it registers with a simulated kubelet by a call."""

import asyncio
import random
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.fakes.books import Cards
from tests.simulation.kubelet import SimulatedKubelet
from tests.simulation.listing import listed_devices, numbers
from tests.simulation.network import SimulatedClient
from tests.simulation.virtual_time import now, seconds

from gpushare_core.dialects.table import RESOURCES
from gpushare_plugin.agent import Agent, Settings
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.checkpoint import CheckpointEntry, StoredUnits, read_answer
from gpushare_plugin.decide.report.conditions import RegistrationState
from gpushare_plugin.kubelet.allocator import Allocator
from gpushare_plugin.kubelet.device_stream import DeviceStream
from gpushare_plugin.kubelet.pod_resources import PodResourcesUnavailableError, read_assigned
from gpushare_plugin.kubelet.reservations import UnitReservations

CALL = 0.003
"""Seconds that PodResources take to answer."""


@dataclass(slots=True)
class Books:
    """Stands for PodResources and the checkpoint's file."""

    kubelet: SimulatedKubelet

    async def assigned_devices(self, *, timeout: float) -> AssignedDevices:
        await asyncio.sleep(CALL / 2)
        if not self.kubelet.is_up or not await self._answers(timeout):
            raise PodResourcesUnavailableError("no answer")
        answer, starts = self.kubelet.listed(), self.kubelet.starts
        await asyncio.sleep(CALL / 2)
        return replace(read_assigned(answer.SerializeToString(), RESOURCES), kubelet=str(starts))

    async def _answers(self, within: float) -> bool:
        """A kubelet that hangs responds to earlier requests when it goes on."""
        deadline = seconds() + within
        while self.kubelet.silent:
            if seconds() >= deadline:
                return False
            await asyncio.sleep(0.1)
        return True

    def read(self, names: Collection[str]) -> tuple[CheckpointEntry, ...]:
        return tuple(self._entries(names))

    def _entries(self, names: Collection[str]) -> Iterator[CheckpointEntry]:
        for uid, container, given in self.kubelet.checkpoint:
            if given.resource in names:
                units = StoredUnits(uid, container, given.resource, numbers(given.ids))
                yield read_answer(units, given.variables)


class Registrar:
    """Stands for a registration and its stream: the kubelet has a list a moment after the plugin offers
    it."""

    def __init__(
        self, kubelet: SimulatedKubelet, name: str, stream: DeviceStream, allocator: Allocator
    ) -> None:
        self.state = RegistrationState(registered=False, message="not registered with the kubelet yet")
        self._kubelet, self._name, self._stream, self._allocator = kubelet, name, stream, allocator
        self.notify: Callable[[], None] = lambda: None

    async def run(self) -> None:
        try:
            while True:
                while not (self._stream.is_offering and self._kubelet.is_up):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.5):
                            await self._stream.changed()
                await asyncio.sleep(CALL)
                await self._serve()
        finally:
            self._leave()

    async def _serve(self) -> None:
        kubelet = self._kubelet
        lists: Any = self._stream.serve()
        kubelet.allocators[self._name] = self._allocator
        self._set(RegistrationState(registered=True))
        following = asyncio.ensure_future(self._follow(lists))
        try:
            while kubelet.allocators.get(self._name) is self._allocator:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            await lists.aclose()
        self._set(RegistrationState(registered=False, message="the kubelet restarts"))

    async def _follow(self, lists: Any) -> None:
        async for message in lists:
            await asyncio.sleep(CALL)
            if self._kubelet.allocators.get(self._name) is self._allocator:
                self._kubelet.devices[self._name] = dict(listed_devices(message))

    def _leave(self) -> None:
        kubelet, name = self._kubelet, self._name
        if kubelet.allocators.get(name) is self._allocator:
            del kubelet.allocators[name]
            kubelet.devices[name] = dict.fromkeys(kubelet.devices.get(name, {}), "Unhealthy")

    def _set(self, state: RegistrationState) -> None:
        if state != self.state:
            self.state = state
            self.notify()


class SimulatedAgent(Agent):
    """Serves no probes, and its registrars are simulated."""

    def __init__(self, client: SimulatedClient, kubelet: SimulatedKubelet, cards: Cards) -> None:
        self._kubelet = kubelet
        settings = Settings(
            node=kubelet.node, device_plugins=Path("/nowhere"), pod_resources=Path("/nowhere"), health_port=0
        )
        books: Any = Books(kubelet)
        super().__init__(
            settings,
            client,
            books,
            open_source=lambda _: cards,
            open_use=lambda _: None,
            now=now,
            clock=seconds,
        )
        self._assignment_reader._checkpoint = books

    def _new_registrar(self, name: str, reservations: UnitReservations) -> Any:
        allocator = Allocator(
            state=self.state,
            assignment_reader=self._assignment_reader,
            reservations=reservations,
            pod_watch=self._pod_watch,
            name=name,
            resource=RESOURCES[name],
        )
        registrar = Registrar(self._kubelet, name, self._streams[name], allocator)
        registrar.notify = self._registration_changed
        return registrar

    async def _run_parts(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._share_node_watch.run())
            group.create_task(self._pod_watch.run())
            group.create_task(self._pod_watch.run_spec_reader())
            group.create_task(self._assignment_reader.run())
            group.create_task(self._keep_reconciled())
            for registrar in self._registrars.values():
                group.create_task(registrar.run())


@dataclass(slots=True)
class SimulatedPlugin:
    """The process on one node; it can be killed and started."""

    client: SimulatedClient
    kubelet: SimulatedKubelet
    cards: Cards
    dice: random.Random
    agent: SimulatedAgent | None = None
    process: "asyncio.Task[None] | None" = field(default=None)

    def start(self) -> None:
        if self.process is None:
            self.agent = SimulatedAgent(self.client, self.kubelet, self.cards)
            self.process = asyncio.ensure_future(self.agent._run_parts())

    async def kill(self) -> None:
        """As by SIGKILL: nobody is told."""
        if self.process is not None:
            process, self.process = self.process, None
            if process.done():
                process.result()
            process.cancel()
            with suppress(asyncio.CancelledError):
                await process

    def check(self) -> None:
        """Raises what ended the process, if it ended by itself."""
        if self.process is not None and self.process.done():
            self.process.result()
