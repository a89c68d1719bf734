"""Cards as NVIDIA's driver knows them, through NVML."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from gpushare_core.api.share_node import GPUShareNode
from gpushare_plugin.devices.card import CardEvent, DeviceSource, PhysicalCard, Reading
from gpushare_plugin.devices.nvml.cards import (
    UNKNOWN_ERROR,
    CardFacts,
    DriverFaultError,
    Pairs,
    reading_of,
    without_answer,
    without_driver,
)
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.limits import NvmlLimits
from gpushare_plugin.devices.nvml.use import NvmlUse
from gpushare_plugin.devices.use import LimitSource, UseSource
from gpushare_plugin.devices.worker import SingleCall, Worker

DEADLINE = 5.0
"""Seconds that a reading may take. A node of 16 cards whose driver has to wake up takes about three."""
PERIOD = 1.0
"""Seconds after which the driver is asked for events."""

_log = logging.getLogger(__name__)


class NvmlFamily:
    """One handle and one thread for cards, use and limits: the library takes one call at a time."""

    def __init__(self, happened: Callable[[], None]) -> None:
        library = NvmlLibrary()
        self._source = NvmlSource(library, happened=happened)
        self._use = NvmlUse(library, self._source.worker)
        self._limits = NvmlLimits(library, self._source.worker)

    def open(self, _: GPUShareNode) -> DeviceSource:
        return self._source

    def open_use(self) -> UseSource:
        return self._use

    def open_limits(self) -> LimitSource:
        return self._limits


class NvmlSource:
    """The cards that NVML lists, less those in MIG mode. Make one for the life of the process.

    The worker makes one call after the other. While a call hangs the cards are unhealthy, and the process can
    end all the same. A card that is plugged in is found when NVML counts it.
    """

    def __init__(
        self,
        library: NvmlLibrary,
        *,
        deadline: float = DEADLINE,
        period: float = PERIOD,
        happened: Callable[[], None] = lambda: None,
    ) -> None:
        """``happened`` is called on the event loop when the next reading has something new.

        ``period``: seconds after which the worker looks for events when it has no other call.
        """
        self._library = library
        self._deadline = deadline
        self._happened = happened
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events: list[CardEvent] = []
        """From NVML, until they are in a reading. Used by the worker alone."""
        self._known: tuple[PhysicalCard, ...] = ()
        self._links: tuple[frozenset[str], Pairs] = (frozenset(), ())
        self._problem = ""
        self.worker = Worker("NVML", idle=self._look_for_events, idle_after=period)
        self._call = SingleCall[Reading](self.worker, deadline)

    async def read(self) -> Reading:
        self._loop = asyncio.get_running_loop()
        known = self._known
        reading = await self._call.result(lambda: self._reading(known))
        if reading is None:
            return self._log_problem(without_answer(self._deadline, known))
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

    # By the worker

    def _look_for_events(self) -> None:
        self._collect()
        if self._events and self._loop:
            with suppress(RuntimeError):  # the loop is closed: the process ends
                self._loop.call_soon_threadsafe(self._happened)

    def _collect(self) -> None:
        try:
            self._events += self._library.events()
        except Exception:
            _log.exception("cannot read NVML's events")

    def _reading(self, known: tuple[PhysicalCard, ...]) -> Reading:
        self._collect()  # before the cards are read: a card that has replaced another has none of its events
        events, self._events = tuple(self._events), []
        return replace(self._cards(known), events=events)

    def _cards(self, known: tuple[PhysicalCard, ...]) -> Reading:
        try:
            facts = self._library.read()
            return reading_of(facts, self._pairs(facts), known)
        except DriverFaultError as error:
            return without_driver(error.code, error.detail, known)
        except Exception as error:  # neither the worker nor the process ends by what a driver answers
            _log.exception("cannot read NVML's answer")
            return without_driver(UNKNOWN_ERROR, repr(error), known)

    def _pairs(self, facts: list[CardFacts]) -> Pairs:
        """NVML is asked for links only when the cards have changed: that is a call for each pair."""
        uuids = frozenset(fact.uuid for fact in facts if fact.uuid and not fact.error)
        if uuids != self._links[0]:
            self._links = (uuids, self._library.linked_pairs(facts))
        return self._links[1]
