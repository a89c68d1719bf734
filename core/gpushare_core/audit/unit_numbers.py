"""Numbers of units as a set that hundreds of thousands of them fit in."""

from collections.abc import Collection


class UnitNumbers:
    """One byte for each number up to the highest: a set of Python's would take sixty for each member."""

    def __init__(self) -> None:
        self._members = bytearray()

    def __len__(self) -> int:
        return self._members.count(1)

    def add(self, numbers: Collection[int]) -> None:
        """Adds ``numbers``, which are those of unit IDs: not negative, and less than 2^18."""
        if (missing := max(numbers, default=-1) + 1 - len(self._members)) > 0:
            self._members.extend(bytes(missing))
        for number in numbers:
            self._members[number] = 1

    def has_any(self, numbers: Collection[int]) -> bool:
        """Whether one of ``numbers`` is a member."""
        end = len(self._members)
        return any(number < end and self._members[number] for number in numbers)
