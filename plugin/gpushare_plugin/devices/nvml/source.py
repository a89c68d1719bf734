"""Cards as NVIDIA's driver knows them, through NVML."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Protocol, TypeVar

from gpushare_plugin.devices.card import CardEvent, PhysicalCard, Reading
from gpushare_plugin.devices.nvml.cards import (
    UNKNOWN_ERROR,
    CardFacts,
    DriverFaultError,
    Pairs,
    reading_of,
    without_answer,
    without_driver,
)

DEADLINE = 5.0
"""Seconds that a reading may take. A node of 16 cards whose driver has to wake up takes about three."""
PERIOD = 1.0
"""Seconds after which the driver is asked for events."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Library(Protocol):
    """What is asked of NVML. Every call may block for ever, and raise ``DriverFaultError``."""

    def read(self) -> list[CardFacts]:
        """Returns what is told of each card."""

    def events(self) -> tuple[CardEvent, ...]:
        """Returns what has happened to these cards since it was called last; without waiting for it."""

    def linked_pairs(self, facts: list[CardFacts]) -> Pairs:
        """Returns which cards are linked directly."""


class NvmlSource:
    """The cards that NVML lists, less those in MIG mode. Make one for the life of the process.

    All calls are made by one thread, one after the other. If one does not return, its cards are unhealthy
    until it does: no other call is made meanwhile, and the process can end all the same. A card that is
    plugged in is found when NVML counts it.
    """

    def __init__(
        self,
        library: Library,
        *,
        deadline: float = DEADLINE,
        period: float = PERIOD,
        happened: Callable[[], None] = lambda: None,
    ) -> None:
        """``happened`` is called on the event loop when there is something that the next reading tells.

        ``period``: seconds after which the thread looks for events when there is nothing else to do.
        """
        self._library = library
        self._deadline = deadline
        self._period = period
        self._happened = happened
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: list[CardEvent] = []
        """Only for the thread, from when they are told until they are in a reading."""
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._known: tuple[PhysicalCard, ...] = ()
        self._answer: asyncio.Future[Reading] | None = None
        self._links: tuple[frozenset[str], Pairs] = (frozenset(), ())
        self._problem = ""
        Thread(target=self._serve, name="NVML", daemon=True).start()

    async def read(self) -> Reading:
        """Waits for a call that hangs only the first time: later readings look whether it has returned."""
        self._loop = asyncio.get_running_loop()
        answer, patience = self._answer, 0.0
        if answer is None:
            self._answer = answer = asyncio.wrap_future(self._ask())
            patience = self._deadline
        await asyncio.wait([answer], timeout=patience)
        if not answer.done():
            return self._log_problem(without_answer(self._deadline, self._known))
        self._answer = None
        reading = answer.result()
        if reading.problem is None:
            self._known = reading.cards
        return self._log_problem(reading)

    def _log_problem(self, reading: Reading) -> Reading:
        reason = reading.problem.reason if reading.problem else ""
        if reading.problem and reason != self._problem:
            _log.warning("%s: %s", reason, reading.problem.message)
        elif self._problem and not reason:
            _log.info("NVML answers again: %d cards", len(reading.cards))
        self._problem = reason
        return reading

    def _ask(self) -> Future[Reading]:
        known = self._known
        return self.call(lambda: self._reading(known))

    def call(self, function: Callable[[], T]) -> Future[T]:
        """Returns what ``function`` returns in the thread, once it has its turn. It may not raise."""
        future: Future[T] = Future()
        self._calls.put(lambda: future.set_result(function()))
        return future

    def _serve(self) -> None:
        """The thread: only here the library is called."""
        while True:
            try:
                call = self._calls.get(timeout=self._period)
            except Empty:
                self._collect()
                if self._events and self._loop:
                    with suppress(RuntimeError):  # the loop is closed: the process ends
                        self._loop.call_soon_threadsafe(self._happened)
            else:
                call()

    def _collect(self) -> None:
        try:
            self._events += self._library.events()
        except Exception:
            _log.exception("what NVML tells of events cannot be read")

    def _reading(self, known: tuple[PhysicalCard, ...]) -> Reading:
        self._collect()  # before the cards are read: a card that is another one then has none of them
        events, self._events = tuple(self._events), []
        return replace(self._cards(known), events=events)

    def _cards(self, known: tuple[PhysicalCard, ...]) -> Reading:
        try:
            facts = self._library.read()
            return reading_of(facts, self._pairs(facts), known)
        except DriverFaultError as error:
            return without_driver(error.code, error.detail, known)
        except Exception as error:  # neither the thread nor the process ends by what a driver answers
            _log.exception("what NVML answered cannot be read")
            return without_driver(UNKNOWN_ERROR, repr(error), known)

    def _pairs(self, facts: list[CardFacts]) -> Pairs:
        """Links are asked for when the cards are others: that is a call for each pair."""
        uuids = frozenset(fact.uuid for fact in facts if fact.uuid and not fact.error)
        if uuids != self._links[0]:
            self._links = (uuids, self._library.linked_pairs(facts))
        return self._links[1]
