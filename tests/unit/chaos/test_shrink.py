"""The shortest failing prefix."""

from collections.abc import Awaitable, Callable

from chaos.shrink import shortest_failing_prefix
from hypothesis import given
from hypothesis import strategies as st


def fails_from(length: int, tried: list[int]) -> Callable[[int], Awaitable[bool]]:
    async def fails(tried_length: int) -> bool:
        tried.append(tried_length)
        return tried_length >= length

    return fails


@given(st.integers(1, 10_000), st.data())
async def test_it_is_found_in_few_attempts(length: int, data: st.DataObject) -> None:
    shortest = data.draw(st.integers(1, length))
    tried: list[int] = []
    found = await shortest_failing_prefix(length, fails_from(shortest, tried), may_go_on=lambda: True)
    assert found == shortest
    assert len(tried) <= 14


async def test_out_of_time_it_returns_what_was_seen_to_fail() -> None:
    tried: list[int] = []
    found = await shortest_failing_prefix(100, fails_from(10, tried), may_go_on=lambda: len(tried) < 2)
    assert (found, tried) == (25, [50, 25])


@given(st.lists(st.booleans(), min_size=20, max_size=20))
async def test_processes_that_do_not_do_the_same_twice_cost_precision_only(answers: list[bool]) -> None:
    seen = {100}

    async def fails(length: int) -> bool:
        if answer := answers.pop():
            seen.add(length)
        return answer

    assert await shortest_failing_prefix(100, fails, may_go_on=lambda: True) in seen
