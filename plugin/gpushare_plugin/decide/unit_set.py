"""A set of units, fast for hundreds of thousands: one byte a unit."""

from collections.abc import Iterable

from gpushare_plugin.decide.unit_ids import CAPACITY, UnknownUnitError, decode_id


class UnitSet:
    """Mutable set of unit numbers."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._members = bytearray(CAPACITY)
        for number in numbers:
            self._members[number] = 1

    def discard(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._members[number] = 0

    def count(self, within: range) -> int:
        return self._members.count(1, within.start, within.stop)

    def lowest(self, amount: int, within: range) -> list[int]:
        """At most ``amount`` members of ``within``, in ascending order."""
        found: list[int] = []
        at = within.start - 1
        while len(found) < amount and (at := self._members.find(1, at + 1, within.stop)) >= 0:
            found.append(at)
        return found


def known_numbers(ids: Iterable[str]) -> list[int]:
    """Numbers of ``ids``, without those that name no unit."""
    numbers = []
    for unit_id in ids:
        try:
            numbers.append(decode_id(unit_id))
        except UnknownUnitError:
            continue
    return numbers
