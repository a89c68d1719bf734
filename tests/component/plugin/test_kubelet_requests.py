"""Other work waits for the kubelet's calls, and not for ever."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from gpushare_plugin.kubelet.kubelet_requests import KubeletRequests
from gpushare_plugin.kubelet.reservations import UnitReservations

LONG = 5.0


def new_calls() -> tuple[KubeletRequests, UnitReservations]:
    reservations = UnitReservations(asyncio.get_running_loop().time)
    return KubeletRequests(reservations), reservations


async def is_over_at_once(waiting: Coroutine[Any, Any, None]) -> bool:
    try:
        await asyncio.wait_for(waiting, 0.05)
    except TimeoutError:
        return False
    return True


async def test_without_calls_nothing_waits() -> None:
    calls, _ = new_calls()
    assert await is_over_at_once(calls.until_over(most=LONG))


async def test_a_round_waits_for_all_calls_under_way() -> None:
    calls, _ = new_calls()
    with calls.one():
        with calls.one():
            assert not await is_over_at_once(calls.until_over(most=LONG))
        assert not await is_over_at_once(calls.until_over(most=LONG))
    assert await is_over_at_once(calls.until_over(most=LONG))


async def test_a_call_that_failed_is_over() -> None:
    calls, _ = new_calls()
    try:
        with calls.one():
            raise ValueError
    except ValueError:
        pass
    assert await is_over_at_once(calls.until_over(most=LONG))


async def test_a_round_waits_for_the_second_call_of_a_container() -> None:
    calls, reservations = new_calls()
    reservations.promise([1])
    assert not await is_over_at_once(calls.until_over(most=LONG))


async def test_a_call_that_never_ends_holds_up_nobody_for_ever() -> None:
    calls, _ = new_calls()
    with calls.one():
        assert await is_over_at_once(calls.until_over(most=0.01))


async def test_a_part_of_a_round_gives_way_to_a_call_under_way() -> None:
    calls, _ = new_calls()
    with calls.one():
        assert not await is_over_at_once(calls.yield_to_kubelet(most=LONG))
        assert await is_over_at_once(calls.yield_to_kubelet(most=0.01))
    assert await is_over_at_once(calls.yield_to_kubelet(most=LONG))


async def test_a_part_of_a_round_lets_in_who_has_arrived() -> None:
    calls, arrived = new_calls()[0], asyncio.Event()
    asyncio.get_running_loop().call_soon(arrived.set)
    await calls.yield_to_kubelet()
    assert arrived.is_set()
