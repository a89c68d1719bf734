"""Whole numbers in texts that others wrote.

Python's own reader takes the digits of other scripts, too, and fails at thousands of them.
"""

MOST_DIGITS = 18
"""Of a number that 64 bits hold."""


def is_number(text: str) -> bool:
    """Whether ``text`` is a decimal number from 0 up that a 64-bit integer holds."""
    return text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS


def whole_number(text: str) -> int:
    """Returns the number that ``text`` is, 0 where it is none."""
    return int(text) if is_number(text) else 0
