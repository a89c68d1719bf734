"""Units that the kubelet is taking: named or allocated, and not yet sure to be in its checkpoint."""

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
        self._kept = [entry for entry in self._kept if called.isdisjoint(entry[1])]

    def allocate(self, numbers: Collection[int]) -> None:
        """The kubelet's call of Allocate for ``numbers`` was granted."""
        allocated = set(numbers)
        self.withdraw(numbers)
        self._keep(numbers, ALLOCATE_DEBOUNCE)
        self.granted += 1
        met = {given.call for given in self._unlisted_in(allocated)}
        earlier = [given.without(allocated) if given.call in met else given for given in self._unlisted]
        every = [*earlier, _Given(self._clock(), self.granted, array("I", sorted(allocated)))]
        self._unlisted = [given for given in every if given.numbers]

    def put_listed(self, *, begun: float) -> None:
        """The kubelet has answered with all that it had written down when it was asked at ``begun``."""
        self._unlisted = [given for given in self._unlisted if given.at + ALLOCATE_DEBOUNCE > begun]

    def may_be_unlisted(self, numbers: Collection[int]) -> bool:
        """Whether a container may have some of ``numbers`` that what was listed last does not show."""
        return any(self._unlisted_in({*numbers}))

    def is_given_since(self, call: int, numbers: Collection[int]) -> bool:
        """Whether some of ``numbers`` were given away when more than ``call`` calls had been granted."""
        return any(given.call > call for given in self._unlisted_in({*numbers}))

    def given_lately(self, numbers: Collection[int]) -> set[int]:
        """Returns those of ``numbers`` given away so lately that the kubelet may not have written them."""
        asked, now = {*numbers}, self._clock()
        lately = (given for given in self._unlisted_in(asked) if given.at + ALLOCATE_DEBOUNCE > now)
        return {number for given in lately for number in given.numbers if number in asked}

    def _unlisted_in(self, numbers: AbstractSet[int]) -> "Iterator[_Given]":
        """Yields those of ``_unlisted`` that have some of ``numbers``. While PodResources do not answer it
        grows with all that is given: the first and the last number, which are ascending, rule out most."""
        block = range(min(numbers, default=0), max(numbers, default=-1) + 1)
        near = (
            given
            for given in self._unlisted
            if given.numbers[0] < block.stop and given.numbers[-1] >= block.start
        )
        return (given for given in near if not numbers.isdisjoint(given.numbers))

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
        live = [entry for entry in self._kept if entry[0] > now]
        self._kept = [*live, (now + seconds, array("I", sorted({*numbers})))]
