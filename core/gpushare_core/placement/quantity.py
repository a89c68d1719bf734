"""Kubernetes quantities: exact amounts, their sums, and memory in whole bytes.

Source: ``k8s.io/apimachinery/pkg/api/resource``: plain, decimal (``500m``, ``2k``), binary (``4Gi``) and
exponent (``1e3``) notation.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

MIB = 2**20

_FEW = 16
"""Amounts of which the sum is remembered: a pod may have thousands of containers."""

_DECIMAL = {
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "": Fraction(1),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
}
_BINARY = {f"{letter}i": Fraction(2 ** (10 * power)) for power, letter in enumerate("KMGTPE", start=1)}
_SUFFIXES = {**_DECIMAL, **_BINARY}
_MEMORY_DECIMAL = {suffix: _DECIMAL[suffix] for suffix in ("k", "M", "G", "T", "P")}
_MEMORY_BINARY = {suffix: _BINARY[suffix] for suffix in ("Ki", "Mi", "Gi", "Ti", "Pi")}
_MEMORY_BYTES = {suffix: int(_SUFFIXES[suffix]) for suffix in ("", *_MEMORY_DECIMAL, *_MEMORY_BINARY)}
_DECIMAL_BYTES = [(suffix, _MEMORY_BYTES[suffix]) for suffix in reversed(_MEMORY_DECIMAL)]
_BINARY_BYTES = [(suffix, _MEMORY_BYTES[suffix]) for suffix in reversed(_MEMORY_BINARY)]
"""The largest first."""

_QUANTITY = re.compile(r"([0-9]{1,40}(?:\.[0-9]{0,40})?)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?")


def parse_amount(text: str) -> Fraction:
    """Returns the exact amount. Raises ``ValueError`` for what is no quantity, or a negative one."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not an amount such as 2, 500m or 4Gi")
    number, suffix, exponent = match.groups()
    return Fraction(number) * (_SUFFIXES[suffix or ""] if exponent is None else Fraction(10) ** int(exponent))


def parse_memory(text: str) -> int:
    """Returns the bytes that ``text`` names, written with a suffix that makes sense for memory.

    Raises:
        ValueError: ``text`` is not a quantity of memory, or not a whole number of bytes.
    """
    match = _QUANTITY.fullmatch(text)
    number, suffix, exponent = match.groups() if match else ("", "", None)
    scale = _MEMORY_BYTES.get(suffix or "")
    if not number or number.endswith(".") or exponent is not None or scale is None:
        raise ValueError(f"{text!r} is not a quantity of memory such as 16Gi, 512Mi or 100M")
    if "." not in number:
        return int(number) * scale
    size = Fraction(number) * scale
    if size.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return size.numerator


def format_memory(size: int, like: str = "1Gi") -> str:
    """Returns ``size`` bytes in the largest suffix of the family of ``like`` that divides it.

    >>> format_memory(16 * 2**30)
    '16Gi'
    >>> format_memory(1536 * 10**6, like="1M")
    '1536M'
    """
    family = _BINARY_BYTES if like.endswith("i") else _DECIMAL_BYTES
    dividing = (suffix for suffix, scale in family if size and size % scale == 0)
    suffix = next(dividing, "")
    return f"{size // _MEMORY_BYTES[suffix]}{suffix}"


def sum_amounts(amounts: Iterable[str]) -> str:
    """Returns the sum; binary notation where all are binary, else decimal; rounded up to billionths.

    >>> sum_amounts(["500m", "1"])
    '1500m'
    >>> sum_amounts(["256Mi", "768Mi"])
    '1Gi'

    Raises:
        ValueError: one of them is no amount.
    """
    given = tuple(amounts)
    return _known_sum(given) if len(given) <= _FEW else _sum(given)


@lru_cache(maxsize=256)
def _known_sum(given: tuple[str, ...]) -> str:
    """Pods of a whole cluster ask for few different amounts, and each is read several times."""
    return _sum(given)


def _sum(given: tuple[str, ...]) -> str:
    total = sum((parse_amount(amount) for amount in given), Fraction(0))
    binary = bool(given) and all(amount.endswith("i") for amount in given)
    return _format_amount(total, _BINARY if binary else _DECIMAL)


def _format_amount(total: Fraction, family: dict[str, Fraction]) -> str:
    """As the API server writes it."""
    if text := _largest_suffix(total, family):
        return text
    if total.denominator == 1:
        return str(total.numerator)
    return f"{-(-total // _DECIMAL['n'])}n"


def _largest_suffix(amount: Fraction, family: dict[str, Fraction]) -> str:
    """Returns ``amount`` in the largest suffix that leaves a whole number; empty when there is none."""
    for suffix in reversed(family):
        if amount and (amount / family[suffix]).denominator == 1:
            return f"{amount // family[suffix]}{suffix}"
    return ""
