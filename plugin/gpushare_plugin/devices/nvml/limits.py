"""Which limits of memory NVIDIA's driver has in force, asked now and then."""

import logging
import time
from collections.abc import Callable, Sequence

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.nvml.cards import UNKNOWN_ERROR, DriverFaultError, driver_problem
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.use import DEADLINE
from gpushare_plugin.devices.use import CardCgroup, MemoryLimits
from gpushare_plugin.devices.worker import SingleCall, Worker

INTERVAL = 10.0
"""Seconds that an answer may be old: a limit is set before its container starts, and stays."""
HUNG = Problem("DriverHung", "the driver does not answer which limits it has: see the condition CardsHealthy")

_log = logging.getLogger(__name__)


class NvmlLimits:
    """Gives the same answer about the same cgroups for ``INTERVAL``. Make one.

    ``worker``: the one in which all of NVML is called.
    """

    def __init__(
        self,
        library: NvmlLibrary,
        worker: Worker,
        *,
        deadline: float = DEADLINE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library = library
        self._call = SingleCall[tuple[frozenset[CardCgroup], MemoryLimits]](worker, deadline)
        self._clock = clock
        self._last: tuple[frozenset[CardCgroup], float, MemoryLimits] | None = None

    async def limits(self, cgroups: Sequence[CardCgroup]) -> MemoryLimits:
        about = frozenset(cgroups)
        if self._last and self._last[0] == about and self._clock() < self._last[1] + INTERVAL:
            return self._last[2]
        answer = await self._call.result(lambda: (about, self._ask(cgroups)))
        if answer is None:
            return MemoryLimits(problem=HUNG)
        asked, limits = answer
        if not limits.problem:
            self._last = (asked, self._clock(), limits)
        return limits

    def _ask(self, cgroups: Sequence[CardCgroup]) -> MemoryLimits:
        """By the worker."""
        try:
            return self._library.limits(cgroups)
        except DriverFaultError as error:
            return MemoryLimits(problem=driver_problem(error.code, error.detail))
        except Exception as error:  # neither the worker nor the process ends by what a driver answers
            _log.exception("cannot read NVML's answer about limits")
            return MemoryLimits(problem=driver_problem(UNKNOWN_ERROR, repr(error)))
