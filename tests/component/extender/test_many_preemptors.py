"""Many pods that want to preempt: none keeps the others waiting."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.fakes.api_server import PODS
from tests.fakes.preemption_world import World, a_world, preemptor_json, requested
from tests.samples.extender import reference


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with a_world() as made:
        yield made


class TestManyThatWait:
    """``wake`` is told of each look, for all of them fit by now."""

    async def test_others_have_their_turn_between_two_looks(self, world: World) -> None:
        """Calls of kube-scheduler waited for seconds until a thousand pods had been looked at."""
        turns, seen = 0, list[int]()

        async def others() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        world.preemptions.would_fit = lambda _: seen.append(turns)
        world.remove_pod("x")
        async with asyncio.TaskGroup() as tasks:
            task = tasks.create_task(others())
            for number in range(10):
                world.refuse(name=f"p{number}")
            await world.until("all looks", lambda: len(seen) >= 10)
            task.cancel()
        assert len(set(seen)) == len(seen)

    async def test_a_more_important_one_is_the_next(self, world: World) -> None:
        def wake(uid: str) -> None:
            world.woken.append(uid)
            world.clock.now += 0.6
            if len(world.woken) == 1:
                world.refuse(name="important", priority=50)

        world.preemptions.would_fit = wake
        world.remove_pod("x")
        for number in range(10):
            world.refuse(name=f"p{number}")
        await world.until("all looks", lambda: len(world.woken) > 10)
        assert world.woken.index("uid-important") <= 2

    async def test_what_is_held_ends_in_time(self, world: World) -> None:
        def wake(uid: str) -> None:
            world.woken.append(uid)
            world.clock.now += 0.6

        world.preemptions.would_fit = wake
        world.remove_pod("x")
        world.api.put(PODS, preemptor_json("q"))
        until = world.clock() + 2.0
        request = requested("q", 4, 10)
        world.ledger.hold(reference("q"), node="n1", request=request, priority=10, until=until)
        for number in range(50):
            world.refuse(name=f"p{number}", units=10)
        await world.until("the end of the hold", lambda: not world.held)
        assert world.clock() < until + 3.0
