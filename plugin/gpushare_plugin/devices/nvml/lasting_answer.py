"""An answer of NVIDIA's driver that counts for a while."""

from collections.abc import Callable
from typing import Generic, TypeVar

from gpushare_plugin.devices.worker import SingleCall, Worker

_T = TypeVar("_T")


class LastingAnswer(Generic[_T]):
    """The last answer, about the same things.

    ``worker``: the one in which all of NVML is called. ``clock``: in steady seconds. ``lasts``: whether an
    answer may be given again.
    """

    def __init__(
        self,
        worker: Worker,
        deadline: float,
        clock: Callable[[], float],
        *,
        lasts: Callable[[_T], bool] = lambda _: True,
    ) -> None:
        self._call = SingleCall[tuple[object, _T]](worker, deadline)
        self._clock, self._lasts = clock, lasts
        self._last: tuple[object, float, _T] | None = None

    async def answer(self, about: object, ask: Callable[[], _T], *, seconds: float) -> _T | None:
        """Returns the last answer where it is about the same and younger than ``seconds``, else that of
        ``ask``, which the worker calls, or that of a question under way; None while the driver hangs."""
        if self._last and self._last[0] == about and self._clock() < self._last[1] + seconds:
            return self._last[2]
        result = await self._call.result(lambda: (about, ask()))
        if result is None:
            return None
        asked, answer = result
        if self._lasts(answer):
            self._last = (asked, self._clock(), answer)
        return answer
