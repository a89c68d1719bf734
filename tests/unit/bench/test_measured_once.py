"""Several rows draw figures from one measurement."""

import asyncio

import pytest
from bench.measuring.figures import NotMeasuredError
from bench.measuring.once import Once


class Measuring:
    """Counts how often it is measured; ``error``: what it ends in."""

    def __init__(self, error: Exception | None = None) -> None:
        self.times = 0
        self._error = error

    async def __call__(self) -> int:
        self.times += 1
        if self._error:
            raise self._error
        return self.times


async def test_what_was_measured_is_kept_for_each_key() -> None:
    once, measuring = Once[str, int](), Measuring()
    assert [await once.get(key, measuring) for key in ("a", "a", "b")] == [1, 1, 2]


async def test_what_failed_is_not_tried_again() -> None:
    once, measuring = Once[str, int](), Measuring(ValueError("no scheduler"))
    for _ in range(2):
        with pytest.raises(ValueError, match="no scheduler"):
            await once.get("a", measuring)
    assert measuring.times == 1


async def test_a_row_that_ran_out_of_time_leaves_the_reason_to_the_next() -> None:
    async def endless() -> int:
        return int(await asyncio.Event().wait())

    once = Once[str, int]()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await once.get("a", endless)
    with pytest.raises(NotMeasuredError, match="ran out of time"):
        await once.get("a", Measuring())
