"""Units that the kubelet is taking: named or allocated, and not yet sure to be in its books."""

from array import array
from collections.abc import Callable, Collection, Iterator
from collections.abc import Set as AbstractSet
from typing import NamedTuple

ALLOCATE_EXPECTED = 1.0
"""Seconds for which an Allocate is waited for after GetPreferredAllocation."""
ALLOCATE_DEBOUNCE = 0.2
"""Seconds after an Allocate until the kubelet has surely written it down."""


class _Given(NamedTuple):
    """What one call of Allocate gave away."""

    at: float
    call: int
    """Of all that were granted."""
    numbers: "array[int]"

    def without(self, numbers: AbstractSet[int]) -> "_Given":
        return self._replace(numbers=array("I", [number for number in self.numbers if number not in numbers]))


class UnitReservations:
    """Nobody else gets these units, and nothing else may change under them.

    The kubelet asks for two containers at once when both restart after it lost its checkpoint, and offers the
    same units for both. Source: ``callGetPreferredAllocationIfAvailable``, which gives up the lock.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: list[tuple[float, array[int]]] = []
        """Until when, and which."""
        self._unlisted: list[_Given] = []
        """What was listed last may lack them."""
        self.granted = 0
        """How many calls of Allocate were granted."""

    def promise(self, numbers: Collection[int]) -> None:
        """GetPreferredAllocation is answered with ``numbers``: the kubelet will call Allocate."""
        self._keep(numbers, ALLOCATE_EXPECTED)

    def withdraw(self, numbers: Collection[int]) -> None:
        """The call of Allocate for which ``numbers`` were promised has come, granted or not."""
        called = set(numbers)
        self._kept = [each for each in self._kept if called.isdisjoint(each[1])]

    def allocate(self, numbers: Collection[int]) -> None:
        """The kubelet's call of Allocate for ``numbers`` was granted."""
        allocated = set(numbers)
        self.withdraw(numbers)
        self._keep(numbers, ALLOCATE_DEBOUNCE)
        self.granted += 1
        met = {each.call for each in self._unlisted_in(allocated)}
        earlier = [each.without(allocated) if each.call in met else each for each in self._unlisted]
        every = [*earlier, _Given(self._clock(), self.granted, array("I", sorted(allocated)))]
        self._unlisted = [each for each in every if each.numbers]

    def put_listed(self, *, begun: float) -> None:
        """The kubelet has answered with all that it had written down when it was asked at ``begun``."""
        self._unlisted = [each for each in self._unlisted if each.at + ALLOCATE_DEBOUNCE > begun]

    def may_be_unlisted(self, numbers: Collection[int]) -> bool:
        """Whether a container may have some of ``numbers`` that what was listed last does not show."""
        return any(self._unlisted_in({*numbers}))

    def is_given_since(self, call: int, numbers: Collection[int]) -> bool:
        """Whether some of ``numbers`` were given away when more than ``call`` calls had been granted."""
        return any(each.call > call for each in self._unlisted_in({*numbers}))

    def given_lately(self, numbers: Collection[int]) -> set[int]:
        """Returns those of ``numbers`` that were given away so lately that the kubelet may not have written
        them down."""
        asked, now = {*numbers}, self._clock()
        lately = (each for each in self._unlisted_in(asked) if each.at + ALLOCATE_DEBOUNCE > now)
        return {number for each in lately for number in each.numbers if number in asked}

    def _unlisted_in(self, numbers: AbstractSet[int]) -> "Iterator[_Given]":
        """Yields those of ``_unlisted`` that have some of ``numbers``. While PodResources are silent they are
        all units that were given since: the first and the last tell of most, for they are ascending."""
        block = range(min(numbers, default=0), max(numbers, default=-1) + 1)
        near = (
            each
            for each in self._unlisted
            if each.numbers[0] < block.stop and each.numbers[-1] >= block.start
        )
        return (each for each in near if not numbers.isdisjoint(each.numbers))

    def holdings(self) -> Iterator["array[int]"]:
        """Yields the units that are reserved now for each container, ascending and each once."""
        now = self._clock()
        return (numbers for until, numbers in self._kept if until > now)

    @property
    def remaining(self) -> float:
        """Seconds until nothing is reserved; 0 when nothing is."""
        return max(0.0, *(until - self._clock() for until, _ in self._kept), 0.0)

    def _keep(self, numbers: Collection[int], seconds: float) -> None:
        now = self._clock()
        live = [each for each in self._kept if each[0] > now]
        self._kept = [*live, (now + seconds, array("I", sorted({*numbers})))]
