"""The queue: every key is worked on in the end, one at a time."""

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from tests.fakes.extender_clock import FakeClock

from gpushare_core.kube.errors import ApiError
from gpushare_operator import work_queue
from gpushare_operator.work_queue import (
    FREE_ROUNDS,
    STEADY_SECONDS,
    Debounce,
    PartlyFailedError,
    Work,
    WorkQueue,
)


@dataclass
class Worker:
    """Fails ``failures`` times, and remembers what it did."""

    failures: int = 0
    again: list[float | None] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    tries: int = 0

    async def __call__(self, key: str) -> float | None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise RuntimeError("the test's failure")
        self.done.append(key)
        return self.again.pop(0) if self.again else None


async def run_until(
    queue: WorkQueue, work: Work, is_reached: Callable[[], bool], *, seconds: float = 60.0
) -> None:
    """Lets the queue run until ``is_reached`` after some work."""
    reached = asyncio.Event()

    async def watched(key: str) -> float | None:
        try:
            return await work(key)
        finally:
            if is_reached():
                reached.set()

    running = asyncio.create_task(queue.run(watched))
    try:
        await asyncio.wait_for(reached.wait(), seconds)
    finally:
        running.cancel()


def fast_queue() -> WorkQueue:
    return WorkQueue(
        clock=asyncio.get_running_loop().time,
        jitter=lambda: 1.0,
        debounce=0.0,
        first_backoff=0.001,
        longest_backoff=0.01,
    )


async def test_a_key_that_comes_many_times_is_worked_on_once() -> None:
    worker = Worker()
    queue = fast_queue()
    for _ in range(100):
        queue.add("a", delay=0.01)
    queue.add("b", delay=0.02)
    await run_until(queue, worker, lambda: "b" in worker.done)
    assert worker.done == ["a", "b"]


async def test_a_change_during_the_work_is_not_lost() -> None:
    done: list[str] = []

    async def work(key: str) -> None:
        if not done:
            queue.add(key)
        done.append(key)

    queue = fast_queue()
    queue.add("a")
    await run_until(queue, work, lambda: len(done) == 2)


async def test_a_failure_is_tried_again_until_it_succeeds() -> None:
    worker = Worker(failures=30)
    queue = fast_queue()
    queue.add("a")
    await run_until(queue, worker, lambda: worker.done == ["a"])
    assert worker.tries == 31


async def test_a_failing_key_does_not_hold_up_another() -> None:
    done: list[str] = []

    async def work(key: str) -> None:
        if key == "bad":
            raise RuntimeError(key)
        done.append(key)

    queue = fast_queue()
    queue.add("bad")
    queue.add("good", delay=0.005)
    await run_until(queue, work, lambda: done == ["good"])


async def test_work_can_ask_to_be_called_again() -> None:
    worker = Worker(again=[0.002, 0.002, None])
    queue = fast_queue()
    queue.add("a")
    await run_until(queue, worker, lambda: worker.done == ["a", "a", "a"])


async def test_the_earliest_time_counts() -> None:
    worker = Worker()
    queue = fast_queue()
    queue.add("a", delay=3600)
    queue.add("a", delay=0)
    queue.add("a", delay=3600)
    await run_until(queue, worker, lambda: worker.done == ["a"])


async def test_delays_grow_with_jitter_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(failures=8)
    queue = fast_queue()
    queue.add("a")
    await run_until(queue, worker, lambda: worker.done == ["a"])
    delays = [float(str(record.args[2])) for record in caplog.records if isinstance(record.args, tuple)]
    assert delays == [0.001, 0.002, 0.004, 0.008, 0.01, 0.01, 0.01, 0.01]


@dataclass
class Restless:
    """Asks for its key again whenever it is worked on, as a cluster does in which something always changes;
    the clock then stands where the key is due."""

    queue: WorkQueue = field(init=False)
    now: float = 0.0
    begun: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.queue = WorkQueue(clock=lambda: self.now)

    async def __call__(self, key: str) -> None:
        self.begun.append(self.now)
        self.queue.add(key)
        self.now = self.queue._due[key]
        await asyncio.sleep(0)

    async def rounds(self, number: int) -> list[float]:
        """Returns the seconds from each of so many more rounds to the next."""
        before = len(self.begun)
        await run_until(self.queue, self, lambda: len(self.begun) > before + number)
        return [
            round(after - first, 3)
            for first, after in itertools.pairwise(self.begun[before : before + number])
        ]


async def test_a_key_that_changes_all_the_time_is_worked_on_less_often() -> None:
    """It was ten times a second, each time for all of a large cluster."""
    restless = Restless()
    restless.queue.add("a")
    restless.now = 0.1
    gaps = await restless.rounds(60)
    assert gaps[:FREE_ROUNDS] == [0.1] * FREE_ROUNDS
    assert gaps[-20:] == [STEADY_SECONDS] * 20


async def test_a_key_that_has_been_calm_is_worked_on_at_once_again() -> None:
    restless = Restless()
    restless.queue.add("a")
    restless.now = 0.1
    await restless.rounds(60)
    restless.now += 60
    assert (await restless.rounds(FREE_ROUNDS + 1))[1:] == [0.1] * (FREE_ROUNDS - 1)


async def test_one_key_that_changes_all_the_time_slows_no_other_one() -> None:
    restless = Restless()
    restless.queue.add("a")
    restless.now = 0.1
    await restless.rounds(60)
    restless.queue.add("b")
    assert restless.queue._due["b"] == restless.now + restless.queue.debounce


async def test_a_key_that_asked_for_itself_often_is_worked_on_soon_when_something_changes() -> None:
    """Each round that it had asked for put off the next change by 0.4 s: a minute of them by minutes."""
    now, done = 0.0, list[str]()

    async def work(key: str) -> float | None:
        nonlocal now
        now += 0.05
        done.append(key)
        return 0.0 if len(done) < 1000 else None

    queue = WorkQueue(clock=lambda: now)
    queue.add("a", delay=0)
    await run_until(queue, work, lambda: len(done) == 1000)
    queue.add("a")
    assert queue._due["a"] <= now + STEADY_SECONDS


async def test_what_is_due_by_itself_does_not_wait_for_the_backoff_of_what_failed() -> None:
    queue = fast_queue()
    queue.first_backoff = 3600
    tries: list[str] = []

    async def work(key: str) -> None:
        tries.append(key)
        if len(tries) == 1:
            raise PartlyFailedError("the test's failure", retry_after=0.001)

    queue.add("a")
    await run_until(queue, work, lambda: len(tries) == 2)


async def test_an_idle_queue_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "BEAT_SECONDS", 0.001)
    beats, lived = itertools.count(), asyncio.Event()

    def clock() -> float:
        if (beat := next(beats)) > 10:
            lived.set()
        return float(beat)

    queue = WorkQueue(clock=clock)
    running = asyncio.create_task(queue.run(Worker()))
    await asyncio.wait_for(lived.wait(), 60)
    running.cancel()
    assert queue.last_beat > 1


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ApiError(429, "TooManyRequests", "slow down", retry_after=20.0), id="by itself"),
        pytest.param(PartlyFailedError("the test's failure", asked_to_wait=20.0), id="of some actions"),
    ],
)
async def test_what_failed_waits_as_long_as_the_server_asks(error: Exception) -> None:
    now, tries = 100.0, list[str]()
    queue = WorkQueue(clock=lambda: now, jitter=lambda: 1.0)

    async def work(key: str) -> None:
        tries.append(key)
        raise error

    queue.add("a", delay=0)
    await run_until(queue, work, lambda: bool(tries))
    assert queue._due["a"] == 130.0


def test_what_is_debounced_and_changes_again_waits_anew_and_what_stays_is_done() -> None:
    clock = FakeClock(100.0)
    debounce = Debounce(3.0, clock)
    assert debounce.seconds_left("a") == 3.0
    clock.now += 2.0
    assert debounce.seconds_left("a") == 1.0
    assert debounce.seconds_left("b") == 3.0
    clock.now += 3.0
    assert debounce.seconds_left("b") == 0.0
    clock.now += 100.0
    assert debounce.seconds_left("b") == 0.0


def test_without_a_debounce_everything_is_done_at_once() -> None:
    assert Debounce(0.0, FakeClock(0.0)).seconds_left("a") == 0.0
