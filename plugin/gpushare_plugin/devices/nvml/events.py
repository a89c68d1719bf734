"""The driver's Xid messages, through NVML's event set. Called by the library's worker only."""

import ctypes
import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pynvml

from gpushare_plugin.devices.card import CardEvent
from gpushare_plugin.devices.nvml.cards import CardFacts

MAX_AT_ONCE = 1000
"""Events that are taken in one go: a card in trouble can send more than anybody reads."""
WAIT = 1
"""Milliseconds: the shortest wait of which NVML's documentation leaves no doubt."""

_log = logging.getLogger(__name__)


class XidEvents:
    """Follows cards, and keeps the Xid messages that they send from then on."""

    def __init__(self) -> None:
        self._set: Any = None
        self._followed: frozenset[str] = frozenset()
        self._uuids: dict[int, str] = {}
        """By the address that is a card's handle."""
        self._kept: tuple[CardEvent, ...] = ()
        """Events of a set that was freed."""
        self._problem = ""

    def follow(self, facts: Sequence[CardFacts]) -> None:
        """Follows exactly the cards that NVML lists. Blocks.

        What cannot be followed is logged: a card serves without it.
        """
        listed = {fact.uuid: fact.index for fact in facts if fact.uuid and not fact.error}
        if self._set is None or not self._followed <= listed.keys():
            self._kept = self.collect()
            self.close()
            try:
                self._set = pynvml.nvmlEventSetCreate()
            except pynvml.NVMLError as error:  # it is tried again the next time
                self._log_problem(f"events cannot be followed: {error}")
        if self._set is not None and listed.keys() - self._followed:
            for uuid in listed.keys() - set(self._uuids.values()):
                self._register(uuid, listed[uuid])

    def _register(self, uuid: str, index: int) -> None:
        try:
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            xids = pynvml.nvmlEventTypeXidCriticalError
            pynvml.nvmlDeviceRegisterEvents(handle, xids, self._set)
        except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound) as error:
            self._log_problem(f"card {uuid} sends no Xid messages: {error}")
        except pynvml.NVMLError as error:  # it is tried again
            self._log_problem(f"the Xid messages of card {uuid} cannot be followed yet: {error}")
            return
        else:
            self._uuids[_address(handle)] = uuid
        self._followed |= {uuid}

    def collect(self) -> tuple[CardEvent, ...]:
        """Returns what has happened since it was called last, without waiting."""
        kept, self._kept = self._kept, ()
        return tuple(dict.fromkeys([*kept, *(self._waiting() if self._set is not None else ())]))

    def _waiting(self) -> Iterator[CardEvent]:
        for _ in range(MAX_AT_ONCE):
            try:
                event = pynvml.nvmlEventSetWait_v2(self._set, WAIT)
            except pynvml.NVMLError_Timeout:
                return
            except pynvml.NVMLError as error:
                self._log_problem(f"NVML lost events, watching again: {error}")
                self.close()
                return
            if event.eventType == pynvml.nvmlEventTypeXidCriticalError:
                yield CardEvent(self._uuids.get(_address(event.device), ""), int(event.eventData))

    def _log_problem(self, problem: str) -> None:
        """Logs the same problem once."""
        if problem != self._problem:
            _log.warning(problem)
        self._problem = problem

    def close(self) -> None:
        if self._set is not None:
            with suppress(pynvml.NVMLError):
                pynvml.nvmlEventSetFree(self._set)
        self._set, self._followed, self._uuids = None, frozenset(), {}


def _address(handle: Any) -> int:
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
