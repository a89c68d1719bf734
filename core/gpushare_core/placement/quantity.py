"""Kubernetes quantities of memory, such as ``16Gi`` or ``100M``, as whole bytes.

Source: ``k8s.io/apimachinery/pkg/api/resource``. Only the suffixes that make sense for memory are known.
"""

import re
from decimal import Decimal

_SUFFIXES = {
    "": 1,
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "T": 10**12,
    "P": 10**15,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}
_QUANTITY = re.compile(r"([0-9]+(?:[.][0-9]+)?)([kMGTP]|[KMGTP]i)?")

MIB = 2**20


def parse_quantity(text: str) -> int:
    """Return the bytes that ``text`` names.

    Raises:
        ValueError: ``text`` is not a quantity of memory, or not a whole number of bytes.
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity of memory such as 16Gi, 512Mi or 100M")
    amount = Decimal(match[1]) * _SUFFIXES[match[2] or ""]
    if amount != int(amount):
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(amount)


def format_quantity(amount: int, like: str = "1Gi") -> str:
    """Write ``amount`` bytes in the largest suffix of the family of ``like`` that divides it.

    >>> format_quantity(16 * 2**30)
    '16Gi'
    >>> format_quantity(1536 * 10**6, like="1M")
    '1536M'
    """
    family = ("Pi", "Ti", "Gi", "Mi", "Ki") if like.endswith("i") else ("P", "T", "G", "M", "k")
    for suffix in family:
        if amount and amount % _SUFFIXES[suffix] == 0:
            return f"{amount // _SUFFIXES[suffix]}{suffix}"
    return str(amount)
