"""IDs of units and sets of units.

One unit is one device for the kubelet, and the list of all devices must fit one gRPC message. So an ID has
three letters, the fewest that number every unit of a node; a few have one less, so that none looks like
``<card index>-<number>``, a device of Volcano's plugin.
"""

from collections.abc import Iterable, Iterator, Sequence

from gpushare_core.placement.unit_range import unit_range

ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
ID_LENGTH = 3
CAPACITY = len(ALPHABET) ** ID_LENGTH
"""How many units a node can have at most."""

_HYPHEN, _DIGITS = ALPHABET.index("-"), range(ALPHABET.index("0"), ALPHABET.index("9") + 1)
SHORT = frozenset(first << 12 | _HYPHEN << 6 | third for first in _DIGITS for third in _DIGITS)
"""Numbers whose IDs have two letters: digits, without the hyphen between them."""

_VALUES = {letter: value for value, letter in enumerate(ALPHABET)}


class UnknownUnitError(ValueError):
    """An ID that names no unit."""


def encode_id(number: int) -> str:
    """Returns the ID of unit ``number``, which is from 0 to ``CAPACITY`` - 1."""
    hyphen = "" if number in SHORT else ALPHABET[number >> 6 & 63]
    return ALPHABET[number >> 12] + hyphen + ALPHABET[number & 63]


def decode_id(unit_id: str) -> int:
    """Returns the number that ``encode_id`` was given. Raises ``UnknownUnitError`` for other texts."""
    try:
        if len(unit_id) != ID_LENGTH:
            return _SHORT_IDS[unit_id]
        first, second, third = tuple(unit_id)
        number = _VALUES[first] << 12 | _VALUES[second] << 6 | _VALUES[third]
        if number not in SHORT:
            return number
    except KeyError:
        pass
    raise UnknownUnitError(f"{unit_id!r} names no unit")


def known_numbers(ids: Iterable[str]) -> Iterator[int]:
    for unit_id in ids:
        try:
            yield decode_id(unit_id)
        except UnknownUnitError:
            continue


_SHORT_IDS = {encode_id(number): number for number in SHORT}


class UnitSet:
    """A mutable set of unit numbers, fast for hundreds of thousands: one byte a unit."""

    def __init__(self, numbers: Iterable[int] = ()) -> None:
        self._members = bytearray(CAPACITY)
        for number in numbers:
            self._members[number] = 1

    @classmethod
    def of(cls, holdings: Iterable[Sequence[int]]) -> "UnitSet":
        """Returns the units of all ``holdings``: in each they are ascending and there once."""
        found = cls()
        for numbers in holdings:
            found._put(numbers, 1)
        return found

    def discard(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self._members[number] = 0

    def discard_all(self, holdings: Iterable[Sequence[int]], *, but: Iterable[int] = ()) -> None:
        """Removes the units of all ``holdings``, in each ascending and there once, but those of ``but``."""
        kept = [number for number in but if self._members[number]]
        for numbers in holdings:
            self._put(numbers, 0)
        for number in kept:
            self._members[number] = 1

    def _put(self, numbers: Sequence[int], member: int) -> None:
        if (block := unit_range(numbers)) is not None:
            self._members[block.start : block.stop] = bytes([member]) * len(block)
            return
        for number in numbers:
            self._members[number] = member

    def has(self, number: int) -> bool:
        return bool(self._members[number])

    def count(self, within: range) -> int:
        return self._members.count(1, within.start, within.stop)

    def lowest(self, amount: int, within: range) -> list[int]:
        """Returns at most ``amount`` members of ``within``, in ascending order."""
        found: list[int] = []
        at = within.start - 1
        while len(found) < amount and (at := self._members.find(1, at + 1, within.stop)) >= 0:
            found.append(at)
        return found
