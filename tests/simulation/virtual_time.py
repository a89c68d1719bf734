"""An event loop whose time passes only when no task can run: a minute of waiting costs nothing."""

import asyncio
import selectors
from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

T = TypeVar("T")

BEGINNING = datetime(2026, 11, 21, 10, tzinfo=UTC)


class NothingWillHappenError(Exception):
    """Everybody waits, and for nothing that has a time."""


class _Jump(selectors.SelectSelector):
    """Instead of waiting for input, of which there is none, the clock jumps ahead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise NothingWillHappenError("all tasks wait for one another")
        self.now += max(0.0, timeout)
        return []


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in an order that follows from their times alone."""

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        return self._jump.now


def now() -> datetime:
    """Returns the time of day in the simulation."""
    return BEGINNING + timedelta(seconds=asyncio.get_running_loop().time())


def seconds() -> float:
    return asyncio.get_running_loop().time()


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)
