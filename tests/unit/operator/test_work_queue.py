"""The queue: every key is worked on in the end, one at a time."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from gpushare_operator import work_queue
from gpushare_operator.cluster.kopf_events import EndlessPauses
from gpushare_operator.work_queue import WorkQueue


@dataclass
class Worker:
    """Fails as often as it is told to, and remembers what it did."""

    failures: int = 0
    again: list[float | None] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    tries: int = 0

    async def __call__(self, key: str) -> float | None:
        self.tries += 1
        if self.failures:
            self.failures -= 1
            raise RuntimeError("told to fail")
        self.done.append(key)
        return self.again.pop(0) if self.again else None


async def run_until(queue: WorkQueue, holds: Callable[[], bool], *, seconds: float = 5.0) -> None:
    """Let the queue run until ``holds`` is true after some work."""
    work, reached = queue.work, asyncio.Event()

    async def watched(key: str) -> float | None:
        try:
            return await work(key)
        finally:
            if holds():
                reached.set()

    queue.work = watched
    running = asyncio.create_task(queue.run())
    try:
        await asyncio.wait_for(reached.wait(), seconds)
    finally:
        running.cancel()


def queue_of(work: Callable[[str], Awaitable[float | None]]) -> WorkQueue:
    return WorkQueue(
        work=work,
        clock=asyncio.get_running_loop().time,
        jitter=lambda: 1.0,
        settle=0.0,
        first_pause=0.001,
        longest_pause=0.01,
    )


async def test_a_key_that_comes_many_times_is_worked_on_once() -> None:
    worker = Worker()
    queue = queue_of(worker)
    for _ in range(100):
        queue.add("a", delay=0.01)
    queue.add("b", delay=0.02)
    await run_until(queue, lambda: "b" in worker.done)
    assert worker.done == ["a", "b"]


async def test_news_that_come_during_the_work_are_not_lost() -> None:
    done: list[str] = []

    async def work(key: str) -> None:
        if not done:
            queue.add(key)
        done.append(key)

    queue = queue_of(work)
    queue.add("a")
    await run_until(queue, lambda: len(done) == 2)


async def test_a_failure_is_tried_again_until_it_succeeds() -> None:
    worker = Worker(failures=30)
    queue = queue_of(worker)
    queue.add("a")
    await run_until(queue, lambda: worker.done == ["a"])
    assert worker.tries == 31


async def test_a_failing_key_does_not_hold_up_another() -> None:
    done: list[str] = []

    async def work(key: str) -> None:
        if key == "bad":
            raise RuntimeError(key)
        done.append(key)

    queue = queue_of(work)
    queue.add("bad")
    queue.add("good", delay=0.005)
    await run_until(queue, lambda: done == ["good"])


async def test_work_can_ask_to_be_called_again() -> None:
    worker = Worker(again=[0.002, 0.002, None])
    queue = queue_of(worker)
    queue.add("a")
    await run_until(queue, lambda: worker.done == ["a", "a", "a"])


async def test_the_earliest_wish_counts() -> None:
    worker = Worker()
    queue = queue_of(worker)
    queue.add("a", delay=3600)
    queue.add("a", delay=0)
    queue.add("a", delay=3600)
    await run_until(queue, lambda: worker.done == ["a"])


async def test_pauses_grow_with_jitter_up_to_a_limit(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(failures=8)
    queue = queue_of(worker)
    queue.add("a")
    await run_until(queue, lambda: worker.done == ["a"])
    pauses = [float(str(record.args[2])) for record in caplog.records if isinstance(record.args, tuple)]
    assert pauses == [0.001, 0.002, 0.004, 0.008, 0.01, 0.01, 0.01, 0.01]


async def test_an_idle_queue_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_queue, "BEAT", 0.001)
    beats, lived = itertools.count(), asyncio.Event()

    def clock() -> float:
        if (beat := next(beats)) > 10:
            lived.set()
        return float(beat)

    queue = WorkQueue(work=Worker(), clock=clock)
    running = asyncio.create_task(queue.run())
    await asyncio.wait_for(lived.wait(), 5)
    running.cancel()
    assert queue.beaten > 1


def test_pauses_between_calls_never_end() -> None:
    pauses = iter(EndlessPauses(jitter=lambda: 1.0))
    assert [next(pauses) for _ in range(9)] == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(15 <= next(iter_) <= 30 for iter_ in [pauses] for _ in range(1000))
