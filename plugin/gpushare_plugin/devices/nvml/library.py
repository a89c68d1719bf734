"""The driver's library, asked through ``pynvml``: plain values come back.

Every call may take for ever, so all of them are made by a worker. ``pynvml`` keeps the loaded library in its
module: there is one ``NvmlLibrary`` in a process. ``events``, ``limits_library`` and ``use_library`` use
``pynvml``, too.
"""

import _ctypes
import ctypes
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import combinations
from threading import RLock
from typing import Any, TypeVar

import pynvml

from gpushare_plugin.devices.card import CardEvent
from gpushare_plugin.devices.nvml.cards import NEVER_ONE_CARD, CardFacts, DriverFaultError
from gpushare_plugin.devices.nvml.events import XidEvents
from gpushare_plugin.devices.nvml.limits_library import nvml_limits
from gpushare_plugin.devices.nvml.use_library import nvml_use
from gpushare_plugin.devices.use import CardCgroup, MemoryLimits, Use, UseQuestion

LIBRARY = "libnvidia-ml.so.1"

_T = TypeVar("_T")


class NvmlLibrary:
    """The library is loaded and initialised from the first reading that succeeds until one fails.

    A failure of the driver as a whole closes the library, so that the next reading opens that of the driver
    which is there by then: it may have been loaded again or upgraded.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        self._library = library
        self.is_open = False
        self._events = XidEvents()
        self._lock = RLock()
        """``close`` waits for a call under way, which would return into code that is unloaded."""

    def read(self) -> list[CardFacts]:
        """Returns what NVML says of each card, by index. Blocks. Raises ``DriverFaultError`` where NVML says
        nothing of any card."""
        with self._lock:
            self._open()
            try:
                facts = [_facts(index) for index in range(_ask(pynvml.nvmlDeviceGetCount))]
            except DriverFaultError:
                self.close()
                raise
            self._events.follow(facts)
            return facts

    def events(self) -> tuple[CardEvent, ...]:
        """Returns what has happened to the cards since it was called last. Blocks.

        Call it before ``read``: where the cards have changed, older events are lost.
        """
        with self._lock:
            return self._events.collect()

    def use(self, question: UseQuestion) -> Use:
        """Returns what is in use. Blocks."""
        uuids = [card.uuid for card in question.cards]
        with self._lock:
            return nvml_use(uuids, by_process=question.by_container)

    def limits(self, cgroups: Sequence[CardCgroup]) -> MemoryLimits:
        """Returns which limits are in force. Blocks. Raises ``DriverFaultError`` where the driver cannot be
        asked at all."""
        with self._lock:
            self._open()
            return nvml_limits(cgroups)

    def linked_pairs(self, facts: Sequence[CardFacts]) -> frozenset[frozenset[str]]:
        """Returns the pairs of UUIDs of which NVML says that they are linked by NVLink. Blocks. Raises as
        ``read``."""
        known = [fact for fact in facts if fact.uuid and not fact.error]
        with self._lock:
            return frozenset(
                frozenset((one.uuid, other.uuid))
                for one, other in combinations(known, 2)
                if _are_linked(one.index, other.index)
            )

    def _open(self) -> None:
        if self.is_open:
            return
        try:
            pynvml.nvmlLib = ctypes.CDLL(self._library)
        except OSError as error:
            raise DriverFaultError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND, str(error)) from error
        self.is_open = True
        try:
            _ask(pynvml.nvmlInit)
        except DriverFaultError:
            self.close()
            raise

    def close(self) -> None:
        """Unloads the library: that of another version of the driver has the same file name."""
        with self._lock:
            if not self.is_open:
                return
            self.is_open = False
            self._events.close()
            with suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()
            handle, pynvml.nvmlLib = pynvml.nvmlLib._handle, None
            pynvml._nvmlGetFunctionPointer_cache.clear()
            _ctypes.dlclose(handle)


def _facts(index: int) -> CardFacts:
    """Returns the answers up to the first error. Raises ``DriverFaultError`` where the driver fails."""
    answers: dict[str, Any] = {}
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        for name, call in _QUESTIONS:
            answers[name] = call(handle)
    except pynvml.NVMLError as error:
        _raise_if_driver(error)
        answers.update(error=error.value, call=_call_of(error))
    except UnicodeError as error:  # pynvml decodes what the driver says
        answers.update(error=pynvml.NVML_ERROR_UNKNOWN, call=_call_of(error))
    return CardFacts(index=index, **answers)


def _optional(call: Callable[[Any], _T], unknown: _T, unanswered: _T) -> Callable[[Any], _T]:
    """Returns ``call`` with ``unknown`` where the driver or the card does not know the question, and
    ``unanswered`` for any other error: a card serves without this answer."""

    def asked(handle: Any) -> _T:
        try:
            return call(handle)
        except pynvml.NVMLError as error:
            _raise_if_driver(error)
            return unknown if error.value in _UNKNOWN_QUESTION else unanswered
        except UnicodeError:  # pynvml decodes what the driver says
            return unanswered

    return asked


def _is_mig_enabled(handle: Any) -> bool:
    """Raises ``NVMLError`` where NVML does not say: a card in MIG mode must not be shared by mistake."""
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(handle)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):
        return False


def _numa_node(handle: Any) -> int:
    """Returns the NUMA node whose memory is next to the card, or -1."""
    (nodes,) = pynvml.nvmlDeviceGetMemoryAffinity(handle, 1, pynvml.NVML_AFFINITY_SCOPE_NODE)
    mask = int(nodes)
    return (mask & -mask).bit_length() - 1  # the lowest one


_UNKNOWN_QUESTION = frozenset(
    {
        pynvml.NVML_ERROR_NOT_SUPPORTED,
        pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
        pynvml.NVML_ERROR_INVALID_ARGUMENT,
    }
)
"""Answers of drivers and cards that do not know the question."""


def _remapping_failures(handle: Any) -> int | None:
    return int(pynvml.nvmlDeviceGetRemappedRows(handle)[3])


def _recovery_action(handle: Any) -> int | None:
    (field,) = pynvml.nvmlDeviceGetFieldValues(handle, [pynvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    if field.nvmlReturn != pynvml.NVML_SUCCESS:
        raise pynvml.NVMLError(field.nvmlReturn)
    return int(field.value.uiVal)


_QUESTIONS: Sequence[tuple[str, Callable[[Any], Any]]] = (
    ("uuid", pynvml.nvmlDeviceGetUUID),  # first: with it the other answers have an owner
    ("model", _optional(pynvml.nvmlDeviceGetName, "", "")),
    ("mig_enabled", _is_mig_enabled),
    ("memory", lambda handle: int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)),
    ("capability", _optional(pynvml.nvmlDeviceGetCudaComputeCapability, (0, 0), (0, 0))),
    ("numa_node", _optional(_numa_node, -1, -1)),
    ("remapping_failures", _optional(_remapping_failures, 0, None)),
    ("recovery_action", _optional(_recovery_action, 0, None)),
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
    """Makes a ``call`` that is not about one card. Raises ``DriverFaultError``."""
    try:
        return call()
    except pynvml.NVMLError as error:
        raise DriverFaultError(error.value, _call_of(error)) from error


def _raise_if_driver(error: Any) -> None:
    """Raises ``DriverFaultError`` where the code means the driver as a whole."""
    if error.value in NEVER_ONE_CARD:
        raise DriverFaultError(error.value, _call_of(error)) from error


def _call_of(error: BaseException) -> str:
    """Returns the name of the function of ``pynvml`` that raised."""
    names = []
    trace = error.__traceback__
    while trace is not None:
        names.append(trace.tb_frame.f_code.co_name)
        trace = trace.tb_next
    return next((name for name in names if name.startswith("nvml")), "NVML")
