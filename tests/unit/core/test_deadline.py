"""A moment by which something has to be over."""

import asyncio

from gpushare_core.process.deadline import Deadline


class Passed:
    """Counts how often the moment has come."""

    def __init__(self) -> None:
        self.times = 0
        self.has = asyncio.Event()

    def __call__(self) -> None:
        self.times += 1
        self.has.set()


async def test_it_passes_once() -> None:
    passed = Passed()
    Deadline(passed).set(0.01)
    await asyncio.wait_for(passed.has.wait(), 30)
    await asyncio.sleep(0.03)
    assert passed.times == 1


async def test_it_can_be_put_off_and_brought_forward() -> None:
    passed, loop = Passed(), asyncio.get_running_loop()
    deadline, begun = Deadline(passed), loop.time()
    deadline.set(0.01)
    deadline.set(0.1)
    await asyncio.wait_for(passed.has.wait(), 30)
    assert loop.time() - begun >= 0.09
    passed.has.clear()
    deadline.set(60.0)
    deadline.set(0.01)
    await asyncio.wait_for(passed.has.wait(), 30)


async def test_what_is_over_does_not_pass_until_it_is_set_again() -> None:
    passed = Passed()
    deadline = Deadline(passed)
    deadline.set(0.01)
    deadline.clear()
    await asyncio.sleep(0.05)
    assert passed.times == 0
    deadline.set(0.01)
    await asyncio.wait_for(passed.has.wait(), 30)


async def test_nor_once_it_is_closed() -> None:
    passed = Passed()
    deadline = Deadline(passed)
    deadline.set(0.01)
    deadline.close()
    await asyncio.sleep(0.05)
    assert (passed.times, deadline.due) == (0, None)
