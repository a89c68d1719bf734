"""Doing something for many items, a bounded number at a time."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def for_each(items: Iterable[T], work: Callable[[T], Awaitable[object]], *, workers: int = 32) -> None:
    """Runs ``work`` for every item; the first failure ends it."""
    source = iter(items)

    async def worker() -> None:
        for item in source:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())
