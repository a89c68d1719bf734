"""How much memory of NVIDIA's cards is in use, asked of the driver now and then."""

import logging
import time
from collections.abc import Callable

from gpushare_core.api.served import Problem
from gpushare_plugin.devices.nvml.cards import UNKNOWN_ERROR, driver_problem
from gpushare_plugin.devices.nvml.lasting_answer import LastingAnswer
from gpushare_plugin.devices.nvml.library import NvmlLibrary
from gpushare_plugin.devices.use import Use, UseQuestion
from gpushare_plugin.devices.worker import Worker

DEADLINE = 5.0
"""Seconds that an answer may take, with all that the library's worker does before."""
HUNG = Problem("DriverHung", "the driver does not answer what is in use: see the condition CardsHealthy")
NOT_ASKED = Problem("DriverNotAsked", "the driver's library is not loaded: see the condition CardsHealthy")

_log = logging.getLogger(__name__)


class NvmlUse:
    """Asks once in the interval of a question, and gives the same answer until then. Make one.

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
        self._answer = LastingAnswer[Use](worker, deadline, clock)

    async def measure(self, question: UseQuestion) -> Use:
        about = (frozenset(card.uuid for card in question.cards), question.by_container)
        use = await self._answer.answer(about, lambda: self._ask(question), seconds=question.interval)
        return Use(problem=HUNG) if use is None else use

    def _ask(self, question: UseQuestion) -> Use:
        """By the worker."""
        try:
            return self._library.use(question) if self._library.is_open else Use(problem=NOT_ASKED)
        except Exception as error:  # neither the worker nor the process ends by what a driver answers
            _log.exception("cannot read NVML's answer about memory in use")
            return Use(problem=driver_problem(UNKNOWN_ERROR, repr(error)))
