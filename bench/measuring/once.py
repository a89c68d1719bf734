"""Measurements that several rows draw figures from."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from bench.measuring.figures import NotMeasuredError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Once(Generic[K, V]):
    """Keeps what was measured for each key, and what failed: nothing is measured twice."""

    def __init__(self) -> None:
        self._found: dict[K, V] = {}
        self._failed: dict[K, Exception] = {}

    async def get(self, key: K, measure: Callable[[], Awaitable[V]]) -> V:
        """Returns what was measured for ``key``, or measures it.

        Raises:
            NotMeasuredError: an earlier row ran out of time over it.
            Exception: what went wrong, now or then.
        """
        if failed := self._failed.get(key):
            raise failed
        if key not in self._found:
            self._found[key] = await self._measured(key, measure)
        return self._found[key]

    async def _measured(self, key: K, measure: Callable[[], Awaitable[V]]) -> V:
        try:
            return await measure()
        except asyncio.CancelledError:
            self._failed[key] = NotMeasuredError("an earlier row ran out of time over the same measurement")
            raise
        except Exception as error:
            self._failed[key] = error
            raise
