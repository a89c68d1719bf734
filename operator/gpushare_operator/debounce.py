"""What many changes ask for one after the other, done once: when it has stayed the same for a while."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Debounce:
    """Use from one thread. ``seconds`` of ``clock``, for which the same has to be asked for."""

    seconds: float
    clock: Callable[[], float]
    _asked: Hashable = field(default=None, init=False)
    _since: float = field(default=float("-inf"), init=False)

    def seconds_left(self, asked: Hashable) -> float:
        """Returns how long what is ``asked`` for now has to wait still; 0 when it is to be done."""
        if asked != self._asked:
            self._asked, self._since = asked, self.clock()
        return max(0.0, self._since + self.seconds - self.clock())
