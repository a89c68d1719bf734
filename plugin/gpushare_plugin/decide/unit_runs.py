"""Units of ours that stand one after the other in a message, decoded as a whole.

A node has up to 256,000 units, and the kubelet sends an ID for each of them several times for every container
that it admits. As texts of Python's they would take tens of megabytes for a moment, and a second.
"""

import re
import sys
from array import array
from binascii import a2b_base64
from collections.abc import Callable

from gpushare_plugin.decide.unit_ids import ALPHABET, ID_LENGTH

_SHORT_LENGTH = 2
_ZERO = ALPHABET[:1].encode()
_STANDARD = bytes.maketrans(b"-_", b"+/")
"""The alphabet of our IDs is that of base64 for URLs: an ID with a zero before it is three bytes."""


class UnitRuns:
    """How one unit stands in a message: between a head, which tells the length of its ID, and a tail."""

    def __init__(self, head: Callable[[int], bytes], tail: bytes = b"") -> None:
        """``head``: by the length of the ID. It begins with a byte that no ID has."""
        self._head, self._tail = head(ID_LENGTH), tail
        long, short, end = (re.escape(each) for each in (self._head, head(_SHORT_LENGTH), tail))
        # Digit, hyphen, digit is an ID of Volcano's plugin; ours has no hyphen there.
        letters = b"(?![0-9]-[0-9])[A-Za-z0-9_-]{3}"
        self._run = re.compile(b"(?:%b%b%b|%b[0-9]{2}%b)++" % (long, letters, end, short, end))
        self._short = re.compile(b"%b([0-9])([0-9])%b" % (short, end))

    def end(self, content: bytes, start: int, stop: int) -> int:
        """Returns where the units end that begin at ``start``: there, where none does."""
        found = self._run.match(content, start, stop)
        return found.end() if found else start

    def numbers(self, content: bytes) -> "array[int]":
        """Returns the numbers of the units that ``content`` is, and nothing else, in their order."""
        run = self._short.sub(self._lengthened, content)
        first, stride = len(self._head), len(self._head) + ID_LENGTH + len(self._tail)
        letters = bytearray(_ZERO * (len(run) // stride * (ID_LENGTH + 1)))
        for place in range(ID_LENGTH):
            letters[place + 1 :: ID_LENGTH + 1] = run[first + place :: stride]
        return _unpacked(a2b_base64(letters.translate(_STANDARD)))

    def _lengthened(self, short: "re.Match[bytes]") -> bytes:
        """Returns an ID of two letters as one of three, so that all are of one length."""
        return self._head + short[1] + b"-" + short[2] + self._tail


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
