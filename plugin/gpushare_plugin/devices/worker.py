"""Calls that may never return, outside of the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Generic, TypeVar

_T = TypeVar("_T")


class Worker:
    """Threads that make calls in the order in which they are asked for.

    The process can end while a call hangs. ``idle`` is called by a thread that had no call for ``idle_after``
    seconds.
    """

    def __init__(
        self,
        name: str,
        *,
        threads: int = 1,
        idle: Callable[[], None] = lambda: None,
        idle_after: float | None = None,
    ) -> None:
        self._idle, self._idle_after = idle, idle_after
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for _ in range(threads):
            Thread(target=self._serve, name=name, daemon=True).start()

    def call(self, function: Callable[[], _T]) -> "Future[_T]":
        """Returns what ``function`` returns, once it had its turn. It may not raise."""
        future: Future[_T] = Future()
        self._calls.put(lambda: future.set_result(function()))
        return future

    def _serve(self) -> None:
        while True:
            try:
                call = self._calls.get(timeout=self._idle_after)
            except Empty:
                self._idle()
            else:
                call()


class SingleCall(Generic[_T]):
    """One call at a time: no other is made before it has returned, however long it hangs."""

    def __init__(self, worker: Worker, deadline: float) -> None:
        self._worker = worker
        self._deadline = deadline
        self._running: asyncio.Future[_T] | None = None

    async def result(self, function: Callable[[], _T]) -> _T | None:
        """Returns the result of ``function``, or of the call under way; None while that hangs.

        A new call is waited for until the deadline; of one that hangs it is only looked whether it returned.
        """
        timeout = 0.0
        if self._running is None:
            self._running = asyncio.wrap_future(self._worker.call(function))
            timeout = self._deadline
        running = self._running
        await asyncio.wait([running], timeout=timeout)
        if not running.done():
            return None
        self._running = None
        return running.result()
