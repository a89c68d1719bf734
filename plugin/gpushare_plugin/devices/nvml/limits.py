"""Which limits of memory NVIDIA's driver has in force, asked now and then."""

import logging
import time
from collections.abc import Callable, Sequence

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.nvml.cards import UNKNOWN_ERROR, DriverFaultError, driver_problem
from gpushare_plugin.devices.nvml.lasting_answer import LastingAnswer
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.nvml.use import DEADLINE
from gpushare_plugin.devices.use import CardCgroup, MemoryLimits
from gpushare_plugin.devices.worker import Worker

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
        self._answer = LastingAnswer[MemoryLimits](
            worker, deadline, clock, lasts=lambda limits: not limits.problem
        )

    async def limits(self, cgroups: Sequence[CardCgroup]) -> MemoryLimits:
        about = frozenset(cgroups)
        limits = await self._answer.answer(about, lambda: self._ask(cgroups), seconds=INTERVAL)
        return MemoryLimits(problem=HUNG) if limits is None else limits

    def _ask(self, cgroups: Sequence[CardCgroup]) -> MemoryLimits:
        """By the worker."""
        try:
            return self._library.limits(cgroups)
        except DriverFaultError as error:
            return MemoryLimits(problem=driver_problem(error.code, error.detail))
        except Exception as error:  # neither the worker nor the process ends by what a driver answers
            _log.exception("cannot read NVML's answer about limits")
            return MemoryLimits(problem=driver_problem(UNKNOWN_ERROR, repr(error)))
