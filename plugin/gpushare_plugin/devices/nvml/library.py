"""The user of ``pynvml``, with ``nvml_events``: asks the driver's library, and gives back plain values.

Every call may take for ever, so that all of it belongs into a thread of its own. ``pynvml`` keeps the loaded
library in its module: there is one ``NvmlLibrary`` in a process.
"""

import _ctypes
import ctypes
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import combinations
from threading import RLock
from typing import Any, TypeVar

import pynvml

from gpushare_plugin.devices.card import CardEvent
from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD, CardFacts, DriverFaultError
from gpushare_plugin.devices.nvml.events import XidEvents
from gpushare_plugin.devices.nvml.use_library import nvml_use
from gpushare_plugin.devices.use import Use, UseQuestion

LIBRARY = "libnvidia-ml.so.1"

_T = TypeVar("_T")


class NvmlLibrary:
    """The driver's library, loaded and initialised from the first reading that succeeds until one fails.

    A failure of the driver as a whole closes it, so that the next reading finds the driver that is there
    then: after it was loaded again, or upgraded, with the library of the new version.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        self._library = library
        self._is_open = False
        self._events = XidEvents()
        self._lock = RLock()
        """Who closes it waits for a call that is under way: it would return into code that is no more."""

    def read(self) -> list[CardFacts]:
        """Returns what NVML says of each card, by index. Blocks.

        Raises:
            DriverFaultError: it says nothing of any card.
        """
        with self._lock:
            return self._read()

    def _read(self) -> list[CardFacts]:
        try:
            self._open()
            facts = [_facts(index) for index in range(_ask(pynvml.nvmlDeviceGetCount))]
        except DriverFaultError:
            self.close()
            raise
        self._events.follow(facts)
        return facts

    def events(self) -> tuple[CardEvent, ...]:
        """Returns what has happened to the cards that were read, since it was called last. Blocks.

        Before the cards are others the old events have to be taken: they are lost then.
        """
        with self._lock:
            return self._events.collect()

    @property
    def is_open(self) -> bool:
        """Whether cards can be asked about; from a reading that succeeds until one fails."""
        return self._is_open

    def use(self, question: UseQuestion) -> Use:
        """Returns what is in use. Blocks."""
        uuids = [card.uuid for card in question.cards]
        with self._lock:
            return nvml_use(uuids, by_process=question.by_container)

    def linked_pairs(self, facts: Sequence[CardFacts]) -> frozenset[frozenset[str]]:
        """Returns the pairs of UUIDs of which NVML says that they are linked by NVLink. Blocks.

        Raises:
            DriverFaultError: as ``read``.
        """
        told = [fact for fact in facts if fact.uuid and not fact.error]
        with self._lock:
            return frozenset(
                frozenset((one.uuid, other.uuid))
                for one, other in combinations(told, 2)
                if _are_linked(one.index, other.index)
            )

    def _open(self) -> None:
        if self._is_open:
            return
        try:
            pynvml.nvmlLib = ctypes.CDLL(self._library)
        except OSError as error:
            raise DriverFaultError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, str(error)) from error
        self._is_open = True
        _ask(pynvml.nvmlInit)

    def close(self) -> None:
        """Unloads the library, too: that of another version of the driver has the same name."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._events.close()
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()
        handle, pynvml.nvmlLib = pynvml.nvmlLib._handle, None
        pynvml._nvmlGetFunctionPointer_cache.clear()
        _ctypes.dlclose(handle)


def _facts(index: int) -> CardFacts:
    """Raises ``DriverFaultError`` where what fails is not this card alone."""
    told: dict[str, Any] = {"index": index}
    try:
        told.update(_told(index))
    except _CardError as error:
        told.update(error.told, error=error.code, call=error.call)
    return CardFacts(**told)


class _CardError(Exception):
    def __init__(self, code: int, call: str, told: dict[str, Any]) -> None:
        super().__init__(code)
        self.code, self.call, self.told = code, call, told


def _told(index: int) -> dict[str, Any]:
    """Raises ``_CardError`` with what was told before."""
    told: dict[str, Any] = {}
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        for name, call in _QUESTIONS:
            told[name] = call(handle)
    except pynvml.NVMLError as error:
        _raise_if_driver(error)
        raise _CardError(error.value, _call_of(error), told) from error
    except UnicodeError as error:  # pynvml decodes what the driver says
        raise _CardError(pynvml.NVML_ERROR_UNKNOWN, _call_of(error), told) from error
    return told


def _optional(call: Callable[[Any], _T], otherwise: _T) -> Callable[[Any], _T]:
    """Returns ``call`` for what a card may serve without."""

    def asked(handle: Any) -> _T:
        try:
            return call(handle)
        except pynvml.NVMLError as error:
            _raise_if_driver(error)
            return otherwise
        except UnicodeError:  # pynvml decodes what the driver says
            return otherwise

    return asked


def _is_mig_enabled(handle: Any) -> bool:
    """Raises ``NVMLError`` where it cannot be told: a card in MIG mode must not be shared by mistake."""
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        return False


def _numa_node(handle: Any) -> int:
    """Returns the node whose memory is next to the card, or -1."""
    (nodes,) = pynvml.nvmlDeviceGetMemoryAffinity(handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)
    return next(_bits(int(nodes)), -1)


def _bits(mask: int) -> Iterator[int]:
    return (bit for bit in range(mask.bit_length()) if mask >> bit & 1)


_UNKNOWN_QUESTION = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)
"""Answers of drivers and cards that do not know what is asked: these live without."""


def _proof(call: Callable[[Any], int]) -> Callable[[Any], int | None]:
    """Returns ``call``, which gives 0 where the question is not known, and None where it was not answered."""

    def asked(handle: Any) -> int | None:
        try:
            return call(handle)
        except pynvml.NVMLError as error:
            _raise_if_driver(error)
            return 0 if error.value in _UNKNOWN_QUESTION else None

    return asked


def _remapping_failures(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetRemappedRows(handle)[3])


def _recovery_action(handle: Any) -> int:
    (field,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if field.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(field.nvmlReturn)
    return int(field.value.uiVal)


_QUESTIONS: Sequence[tuple[str, Callable[[Any], Any]]] = (
    ("uuid", pynvml.nvmlDeviceGetUUID),  # first: with it the other answers have an owner
    ("model", _optional(pynvml.nvmlDeviceGetName, "")),
    ("mig_enabled", _is_mig_enabled),
    ("memory", lambda handle: int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)),
    ("capability", _optional(pynvml.nvmlDeviceGetCudaComputeCapability, (0, 0))),
    ("numa_node", _optional(_numa_node, -1)),
    ("remapping_failures", _proof(_remapping_failures)),
    ("recovery_action", _proof(_recovery_action)),
)


def _are_linked(one: int, other: int) -> bool:
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in (one, other)]
        status = pynvml.nvmlDeviceGetP2PStatus(*handles, pynvml.NVML_P2P_CAPS_INDEX_NVLINK)
    except pynvml.NVMLError as error:
        _raise_if_driver(error)
        return False
    return bool(status == pynvml.NVML_P2P_STATUS_OK)


def _ask(call: Callable[[], _T]) -> _T:
    """Returns the answer of a ``call`` that is not about one card. Raises ``DriverFaultError``."""
    try:
        return call()
    except pynvml.NVMLError as error:
        raise DriverFaultError(error.value, _call_of(error)) from error


def _raise_if_driver(error: Any) -> None:
    """Raises ``DriverFaultError`` where the code says that the driver as a whole does not serve."""
    if error.value in NEVER_ONE_CARD:
        raise DriverFaultError(error.value, _call_of(error)) from error


def _call_of(error: BaseException) -> str:
    """Returns the name of the function of ``pynvml`` that raised, as its documentation has it."""
    names = []
    trace = error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return next((name for name in names if name.startswith("nvml")), "NVML")
