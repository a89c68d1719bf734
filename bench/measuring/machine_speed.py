"""How fast a core is at the moment: the same virtual machine may be twice as fast an hour later, and its
memory slower by half while its processor is not, for caches are shared with neighbours."""

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

ROUNDS = 1_000_000
TRIES = 2


@dataclass(slots=True)
class MachineSpeed:
    """Looked at between measurements. ``clock``: of processor time, in seconds."""

    rounds: int = ROUNDS
    clock: Callable[[], float] = time.process_time
    sums: list[float] = field(default_factory=list, init=False)
    """Seconds for so many additions, at each look."""
    reads: list[float] = field(default_factory=list, init=False)
    """Seconds for as many reads all over 40 MiB, each of which says where the next one is."""
    _places: Sequence[int] = field(init=False)

    def __post_init__(self) -> None:
        self._places = one_circle(self.rounds)

    def look(self) -> None:
        self.sums.append(min(self._timed(self._add) for _ in range(TRIES)))
        self.reads.append(min(self._timed(self._read) for _ in range(TRIES)))

    def __str__(self) -> str:
        return (
            f"Between the rows a core did {self.rounds:,} additions in Python in {_range(self.sums)},"
            f" and as many reads of memory in {_range(self.reads)}."
        )

    def _timed(self, work: Callable[[], None]) -> float:
        begun = self.clock()
        work()
        return self.clock() - begun

    def _add(self) -> None:
        total = 0
        for number in range(self.rounds):
            total += number * number % 7

    def _read(self) -> None:
        place = 0
        for _ in range(self.rounds):
            place = self._places[place]


def one_circle(length: int) -> Sequence[int]:
    """Returns for each place another one, by which all are come by, in an order that no cache foresees."""
    order = [*range(length)]
    random.Random(1).shuffle(order)  # noqa: S311  # no secret
    following = [0] * length
    for place, after in zip(order, order[1:] + order[:1], strict=True):
        following[place] = after
    return following


def _range(seconds: Sequence[float]) -> str:
    return f"{1e3 * min(seconds):.0f} to {1e3 * max(seconds):.0f} ms"
