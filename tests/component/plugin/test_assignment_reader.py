"""What the kubelet has assigned is read at moments that do no harm, and as often as it helps."""

import asyncio
from itertools import chain
from pathlib import Path

import pytest
from tests.samples.plugin import NODE, assigned, name_of

from gpushare_core.kube.backoff import Backoff
from gpushare_plugin.decide.held.assigned_devices import AssignedDevices
from gpushare_plugin.decide.held.kubelet_restart import PodsListedSinceRestart
from gpushare_plugin.kubelet.assignment_reader import PERIOD, AssignmentReader
from gpushare_plugin.kubelet.checkpoint import CheckpointFile
from gpushare_plugin.kubelet.pod_resources import PodResourcesUnavailableError
from gpushare_plugin.kubelet.reservations import UnitReservations
from gpushare_plugin.state import PluginState

ALL_SHOWN = PodsListedSinceRestart(kubelet="", complete=True)


class Answers:
    """PodResources whose answers come when the test says."""

    def __init__(self) -> None:
        self.calls: list[asyncio.Future[AssignedDevices]] = []
        self._called = asyncio.Event()

    async def assigned_devices(self, **_: float) -> AssignedDevices:
        self.calls.append(asyncio.get_running_loop().create_future())
        self._called.set()
        return await self.calls[-1]

    async def asked(self, times: int) -> None:
        """Returns when that many calls were made."""
        async with asyncio.timeout(30):
            while len(self.calls) < times:
                self._called.clear()
                await self._called.wait()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Bench:
    """A reader of one node, its clock and the kubelet's answers."""

    def __init__(self, folder: Path) -> None:
        self.state = PluginState(NODE)
        self.answers = Answers()
        self.clock = Clock()
        self.reservations = UnitReservations(self.clock)
        self.reader = AssignmentReader(
            self.state,
            self.answers,  # type: ignore[arg-type]
            CheckpointFile(folder),
            reservations=self.reservations,
            after_reading=_nothing,
            clock=self.clock,
            backoff=Backoff(first=1.0, most=10.0, jitter=lambda: 1.0),
        )


async def _nothing() -> None:
    return


@pytest.fixture
async def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def overtaken_reading(bench: Bench) -> asyncio.Task[None]:
    """Returns a reading that is not answered yet; a later one already was."""
    early = asyncio.create_task(bench.reader.read())
    await bench.answers.asked(1)
    late = asyncio.create_task(bench.reader.read_during_call(timeout=60))
    await bench.answers.asked(2)
    bench.answers.calls[1].set_result(assigned(a={"main": [0, 1]}))
    await late
    return early


async def test_an_older_answer_that_comes_later_is_not_believed(bench: Bench) -> None:
    early = await overtaken_reading(bench)
    bench.answers.calls[0].set_result(assigned(a={"main": []}))
    await early
    assert list(bench.state.assigned.pods[name_of("a")].containers["main"]) == [0, 1]


async def test_a_failure_that_began_earlier_is_not_believed(bench: Bench) -> None:
    early = await overtaken_reading(bench)
    bench.answers.calls[0].set_exception(PodResourcesUnavailableError("too slow"))
    await early
    assert bench.state.pod_resources_available


async def test_units_of_a_pod_that_nobody_ends_are_looked_at_ever_less_often(bench: Bench) -> None:
    """Such as those of a static pod whose mirror the API server refuses."""
    bench.state.put_assigned(assigned(static={"main": [0]}), ALL_SHOWN)
    assert [bench.reader.delay() for _ in range(6)] == [1, 2, 4, 8, 10, 10]
    bench.reader.read_soon()
    assert bench.reader.delay() == 1
    bench.state.put_assigned(AssignedDevices(), ALL_SHOWN)
    assert bench.reader.delay() == PERIOD
    bench.state.put_assigned(assigned(static={"main": [0]}), ALL_SHOWN)
    assert bench.reader.delay() == 1


async def test_a_kubelet_that_does_not_answer_is_asked_ever_less_often(bench: Bench) -> None:
    assert [bench.reader.delay() for _ in range(5)] == [1, 2, 4, 8, 10]


async def test_an_answer_during_a_call_shows_that_the_reader_is_not_stuck(bench: Bench) -> None:
    bench.clock.now += 100
    call = asyncio.create_task(bench.reader.read_during_call(timeout=60))
    await bench.answers.asked(1)
    bench.answers.calls[0].set_result(AssignedDevices())
    await call
    assert bench.reader.last_round == bench.clock.now


async def test_units_are_reserved_until_the_kubelet_has_written_them_down() -> None:
    clock = Clock()
    reservations = UnitReservations(clock)
    reservations.promise([1, 2])
    reservations.promise([7])
    assert (sorted(chain.from_iterable(reservations.holdings())), reservations.remaining) == ([1, 2, 7], 1.0)
    reservations.allocate([2, 1])
    clock.now += 0.5
    assert (sorted(chain.from_iterable(reservations.holdings())), reservations.remaining) == ([7], 0.5)
    clock.now += 0.5
    assert (list(chain.from_iterable(reservations.holdings())), reservations.remaining) == ([], 0.0)
