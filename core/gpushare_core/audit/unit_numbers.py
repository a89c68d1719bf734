"""Numbers of units as a set that hundreds of thousands of them fit in."""

from collections.abc import Sequence

from gpushare_core.placement.unit_range import unit_range


class UnitNumbers:
    """One byte for each number up to the highest: a set of Python's would take sixty for each member."""

    def __init__(self) -> None:
        self._members = bytearray()

    def __len__(self) -> int:
        return self._members.count(1)

    def add(self, numbers: Sequence[int]) -> None:
        """Adds ``numbers``, ascending and each there once. They are those of unit IDs: not negative, and less
        than 2^18."""
        if (missing := (numbers[-1] if numbers else -1) + 1 - len(self._members)) > 0:
            self._members.extend(bytes(missing))
        if (block := unit_range(numbers)) is not None:
            self._members[block.start : block.stop] = b"\1" * len(block)
            return
        for number in numbers:
            self._members[number] = 1

    def has_any(self, numbers: Sequence[int]) -> bool:
        """Whether one of ``numbers``, ascending and each there once, is a member."""
        if (block := unit_range(numbers)) is not None:
            return self._members.find(1, block.start, block.stop) >= 0
        end = len(self._members)
        return any(number < end and self._members[number] for number in numbers)
