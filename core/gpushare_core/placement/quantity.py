"""Kubernetes quantities: exact amounts, their sums, and memory in whole bytes.

Source: ``k8s.io/apimachinery/pkg/api/resource``: plain, decimal (``500m``, ``2k``), binary (``4Gi``) and
exponent (``1e3``) notation.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

MIB = 2**20

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
_MEMORY_SUFFIXES = {"", *_MEMORY_DECIMAL, *_MEMORY_BINARY}

_QUANTITY = re.compile(r"([0-9]{1,40}(?:\.[0-9]{0,40})?)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?")


@dataclass(frozen=True, slots=True)
class _Parts:
    """A quantity taken apart. ``exponent`` is None but in exponent notation."""

    number: str
    suffix: str
    exponent: str | None

    @property
    def amount(self) -> Fraction:
        scale = _SUFFIXES[self.suffix] if self.exponent is None else Fraction(10) ** int(self.exponent)
        return Fraction(self.number) * scale

    @property
    def is_memory(self) -> bool:
        """Whether it is written as the API's models take memory: a suffix that makes sense for it."""
        return self.exponent is None and self.suffix in _MEMORY_SUFFIXES and not self.number.endswith(".")


def parse_amount(text: str) -> Fraction:
    """Returns the exact amount. Raises ``ValueError`` for what is no quantity, or a negative one."""
    parts = _parse(text)
    if parts is None:
        raise ValueError(f"{text!r} is not an amount such as 2, 500m or 4Gi")
    return parts.amount


def parse_memory(text: str) -> int:
    """Returns the bytes that ``text`` names.

    Raises:
        ValueError: ``text`` is not a quantity of memory, or not a whole number of bytes.
    """
    parts = _parse(text)
    if parts is None or not parts.is_memory:
        raise ValueError(f"{text!r} is not a quantity of memory such as 16Gi, 512Mi or 100M")
    amount = parts.amount
    if amount.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return amount.numerator


def format_memory(size: int, like: str = "1Gi") -> str:
    """Returns ``size`` bytes in the largest suffix of the family of ``like`` that divides it.

    >>> format_memory(16 * 2**30)
    '16Gi'
    >>> format_memory(1536 * 10**6, like="1M")
    '1536M'
    """
    family = _MEMORY_BINARY if like.endswith("i") else _MEMORY_DECIMAL
    return _largest_suffix(Fraction(size), family) or str(size)


def sum_amounts(amounts: Iterable[str]) -> str:
    """Returns the sum; binary notation where all are binary, else decimal; rounded up to billionths.

    >>> sum_amounts(["500m", "1"])
    '1500m'
    >>> sum_amounts(["256Mi", "768Mi"])
    '1Gi'

    Raises:
        ValueError: one of them is no amount.
    """
    given = list(amounts)
    total = sum((parse_amount(amount) for amount in given), Fraction(0))
    binary = bool(given) and all(amount.endswith("i") for amount in given)
    return _format_amount(total, _BINARY if binary else _DECIMAL)


def _parse(text: str) -> _Parts | None:
    match = _QUANTITY.fullmatch(text)
    return _Parts(match[1], match[2] or "", match[3]) if match else None


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
