"""Calls that may never return, outside of the event loop."""

from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

_T = TypeVar("_T")


class Worker:
    """Threads that make calls, in the order in which they are asked for. The process can end while one
    hangs."""

    def __init__(self, name: str, *, threads: int = 1) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        for _ in range(threads):
            Thread(target=self._serve, name=name, daemon=True).start()

    def ask(self, call: Callable[[], _T]) -> "Future[_T]":
        """Returns where the answer of ``call`` will be, which does not raise."""
        future: Future[_T] = Future()
        self._calls.put(lambda: future.set_result(call()))
        return future

    def _serve(self) -> None:
        while True:
            self._calls.get()()
