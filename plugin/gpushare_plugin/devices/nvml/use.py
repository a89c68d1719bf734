"""How much memory of NVIDIA's cards is in use, asked of the driver now and then."""

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Protocol

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.nvml.cards import UNKNOWN_ERROR, driver_problem
from gpushare_plugin.devices.use import Use, UseQuestion

DEADLINE = 5.0
"""Seconds that an answer may take, with all that the library's thread does before."""
HUNG = Problem("DriverHung", "the driver does not answer what is in use: see the condition CardsHealthy")
NOT_ASKED = Problem("DriverNotAsked", "the driver's library is not loaded: see the condition CardsHealthy")


_log = logging.getLogger(__name__)


class LibraryThread(Protocol):
    """The thread in which NVML is called, one call after the other."""

    def call(self, function: Callable[[], Use]) -> Future[Use]:
        """Returns what ``function`` returns, once it had its turn. It may not raise."""


class UseLibrary(Protocol):
    """What is asked of NVML. Every call may block for ever."""

    @property
    def is_open(self) -> bool:
        """Whether it can be asked."""

    def use(self, question: UseQuestion) -> Use:
        """Returns what is in use of the cards that are asked about."""


class NvmlUse:
    """Asks once in the interval of a question, and gives the same answer until then. Make one.

    Where no answer comes the next question waits for that one: a driver that hangs is asked once.
    """

    def __init__(
        self,
        library: UseLibrary,
        thread: LibraryThread,
        *,
        deadline: float = DEADLINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library = library
        self._thread = thread
        self._deadline = deadline
        self._clock = clock
        self._open: tuple[object, asyncio.Future[Use]] | None = None
        self._last: tuple[object, float, Use] | None = None

    async def measure(self, question: UseQuestion) -> Use:
        about = (frozenset(card.uuid for card in question.cards), question.by_container)
        if self._last and self._last[0] == about and self._clock() < self._last[1] + question.interval:
            return self._last[2]
        patience = 0.0
        if self._open is None:
            answer = asyncio.wrap_future(self._thread.call(lambda: self._ask(question)))
            self._open, patience = (about, answer), self._deadline
        asked, answer = self._open
        await asyncio.wait([answer], timeout=patience)
        if not answer.done():
            return Use(problem=HUNG)
        self._open = None
        self._last = (asked, self._clock(), answer.result())
        return self._last[2]

    def _ask(self, question: UseQuestion) -> Use:
        """In the thread."""
        try:
            return self._library.use(question) if self._library.is_open else Use(problem=NOT_ASKED)
        except Exception as error:  # neither the thread nor the process ends by what a driver answers
            _log.exception("what NVML answered about use cannot be read")
            return Use(problem=driver_problem(UNKNOWN_ERROR, repr(error)))
