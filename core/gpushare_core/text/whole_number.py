"""Whole numbers in texts that others wrote.

``int`` accepts digits of other scripts, too, and fails for thousands of digits.
"""

MAX_DIGITS = 18
"""Of a number that 64 bits hold."""
MAX_VERSION_DIGITS = 1000
"""Of a resourceVersion. The API sets no bound (KEP-5504); servers without etcd count nanoseconds since 1970:
19 digits."""


def is_number(text: str) -> bool:
    """Whether ``text`` is a decimal number from 0 up that a 64-bit integer holds."""
    return text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS


def whole_number(text: str) -> int:
    """Returns 0 where ``text`` is no number."""
    return int(text) if is_number(text) else 0


def version_number(text: str) -> int:
    """Returns a resourceVersion as a number, the greater of two is newer; 0 where ``text`` is none.

    Source: KEP-5504.
    """
    is_version = text.isascii() and text.isdecimal() and len(text) <= MAX_VERSION_DIGITS
    return int(text) if is_version else 0
