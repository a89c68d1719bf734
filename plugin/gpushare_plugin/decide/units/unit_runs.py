"""Units of ours that stand one after the other in a message, decoded as a whole.

A node has up to 256,000 units, and the kubelet sends an ID for each of them several times for every container
that it admits. As texts of Python's they would take tens of megabytes for a moment, and a second.
"""

import binascii
import re
import sys
from array import array
from collections.abc import Callable
from string import digits

from gpushare_plugin.decide.units.unit_ids import ALPHABET, ID_LENGTH

_SHORT_LENGTH = 2
_ZERO = ALPHABET[:1].encode()
_AT_ONCE = 256, 16, 1
"""Units that the patterns have one after the other: each match costs as much as four of them."""
_FIRST_WINDOW, _GROWTH = 4096, 2
"""Bytes of the first window, and by how much windows grow that held units of ours alone. Reading begins anew
after each foreign ID: without windows it would look at all the rest each time."""
_NO_LETTER = b"!"
"""Base64 does not have it."""
_OURS, _STANDARD = ALPHABET.encode(), ALPHABET.translate(str.maketrans("-_", "+/")).encode()
_BASE64 = bytes(
    _STANDARD[_OURS.index(number)] if number in _OURS else ord(_NO_LETTER) for number in range(256)
)
"""The alphabet of our IDs is that of base64 for URLs: an ID with a zero before it is three bytes."""
_IS_DIGIT, _IS_HYPHEN = (
    bytes(number in letters for number in range(256)) for letters in (digits.encode(), b"-")
)


class UnitRuns:
    """How one unit stands in a message: between a head, which says how long its ID is, and a tail."""

    def __init__(self, head: Callable[[int], bytes], tail: bytes = b"") -> None:
        """``head``: by the length of the ID. It begins with a byte that no ID has."""
        self._head, self._tail = head(ID_LENGTH), tail
        begin, short, end = (re.escape(part) for part in (self._head, head(_SHORT_LENGTH), tail))
        # Digit, hyphen, digit is an ID of Volcano's plugin; ours has no hyphen there.
        long = begin + b"(?![0-9]-[0-9])[A-Za-z0-9_-]{3}" + end
        others = short + b"[0-9]{2}" + end
        alike = begin + b"[^%b]" % re.escape(self._head[:1]) * ID_LENGTH + end
        self._exactly = re.compile(b"|".join([*(long * count for count in _AT_ONCE), others]))
        self._alike = re.compile(b"|".join([*(alike * count for count in _AT_ONCE), others]))
        self._short = re.compile(b"%b([0-9])([0-9])%b" % (short, end))

    def read(self, content: bytes, start: int, stop: int) -> "tuple[array[int], int]":
        """Returns the numbers of the units that begin at ``start``, in their order, and where they end: at
        ``start`` where none begins there."""
        numbers, window = array("I"), _FIRST_WINDOW
        while True:
            found, end = self._within(content, start, min(stop, start + window))
            if end == start:
                return numbers, end
            numbers = numbers + found if numbers else found
            start, window = end, window * _GROWTH

    def _within(self, content: bytes, start: int, stop: int) -> "tuple[array[int], int]":
        # A quarter of the time of looking at each letter; hardly ever an ID is none of ours.
        end = _end(self._alike, content, start, stop)
        numbers = self._numbers(content[start:end])
        if numbers is None:
            end = _end(self._exactly, content, start, stop)
            numbers = self._numbers(content[start:end])
        return numbers or array("I"), end

    def _numbers(self, run: bytes) -> "array[int] | None":
        """Returns the numbers of what looks like units; None where one of them is not ours."""
        run, short = self._short.subn(self._lengthened, run)
        first, stride = len(self._head), len(self._head) + ID_LENGTH + len(self._tail)
        columns = [run[first + place :: stride] for place in range(ID_LENGTH)]
        if _hyphenated(columns) != short:
            return None
        letters = bytearray(_ZERO * (len(run) // stride * (ID_LENGTH + 1)))
        for place, column in enumerate(columns, 1):
            letters[place :: ID_LENGTH + 1] = column
        try:
            return _unpacked(binascii.a2b_base64(letters.translate(_BASE64), strict_mode=True))
        except binascii.Error:
            return None

    def _lengthened(self, short: "re.Match[bytes]") -> bytes:
        """Returns an ID of two letters as one of three, so that all are of one length."""
        return self._head + short[1] + b"-" + short[2] + self._tail


def _end(pattern: "re.Pattern[bytes]", content: bytes, start: int, stop: int) -> int:
    """One match after the other: repeated in the pattern they would keep a place to go back to for each, and
    where they must not go back (``++``) Python before 3.11.5 ends them elsewhere (python/cpython#106052)."""
    while found := pattern.match(content, start, stop):
        start = found.end()
    return start


def _hyphenated(columns: list[bytes]) -> int:
    """Returns how many IDs have a hyphen between digits, by the letters of all of them at each place."""
    tables = (_IS_DIGIT, _IS_HYPHEN, _IS_DIGIT)
    first, middle, last = (
        int.from_bytes(column.translate(table), "big") for column, table in zip(columns, tables, strict=True)
    )
    return (first & middle & last).bit_count()


def _unpacked(packed: bytes) -> "array[int]":
    """Returns the numbers that have three bytes each in ``packed``."""
    wide = bytearray(len(packed) // 3 * 4)
    for place in range(3):
        wide[place::4] = packed[2 - place :: 3]
    numbers = array("I")
    numbers.frombytes(wide)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
