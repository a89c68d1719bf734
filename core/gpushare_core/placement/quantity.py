"""Kubernetes quantities: amounts as Kubernetes reads them, their sums, and memory in whole bytes.

Source: ``ParseQuantity`` of ``k8s.io/apimachinery/pkg/api/resource``.
"""

import re
from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache

MIB = 2**20

MAX_AMOUNT = 2**63 - 1
"""The largest amount. Kubernetes documents that larger ones are capped."""

_MAX_CACHED_TEXT = 256
"""Characters of amounts whose sum is cached: a pod may have thousands of containers, and long amounts."""

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

_QUANTITY = re.compile(
    r"(?P<sign>[+-]?)(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_MEMORY = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?)([numkMGTPE]|[KMGTPE]i)?")

_MAX_DIGITS = 64
"""Digits that decide what an amount is: 19 before the point, 9 behind it, 18 more by the suffix ``Ei``."""


def read_amount(value: object) -> Fraction:
    """Returns what Kubernetes reads from ``value``, a field of type ``resource.Quantity``: rounded up to
    billionths, and at most ``MAX_AMOUNT``. A text that Kubernetes refuses counts as ``MAX_AMOUNT``, not as
    nothing: it fits nowhere, so its pod waits."""
    if value is None:
        return Fraction(0)
    try:
        return min(_parse(str(value)), Fraction(MAX_AMOUNT))
    except ValueError:
        return Fraction(MAX_AMOUNT)


def _parse(text: str) -> Fraction:
    """Raises ``ValueError`` for what is no quantity, or a negative one."""
    match = _QUANTITY.fullmatch(text)
    if not text or match is None:
        raise ValueError("no quantity")
    part, exponent = match["part"] or "", _exponent(match["exponent"] or "0")
    digits = (match["whole"] + part).lstrip("0")
    if digits and match["sign"] == "-":
        raise ValueError("negative")
    scale = _SUFFIXES[match["suffix"] or ""]
    billionths = _billionths(digits or "0", power=exponent - len(part), scale=scale)
    return Fraction(billionths, 10**9)


def _exponent(text: str) -> int:
    """Returns the exponent in 32 bits, as Kubernetes converts it. Raises ``ValueError`` beyond 64 bits."""
    digits = text.lstrip("+-").lstrip("0") or "0"
    exponent = int(digits[:_MAX_DIGITS]) * (-1 if text.startswith("-") else 1)
    if not -(2**63) <= exponent < 2**63:
        raise ValueError("an exponent of more than 64 bits")
    return (exponent + 2**31) % 2**32 - 2**31


def _billionths(digits: str, *, power: int, scale: Fraction) -> int:
    """Returns ``digits`` times 10 to the ``power`` times ``scale`` in billionths, rounded up. Not exact far
    beyond ``MAX_AMOUNT``: a pod's author chooses how long the number is."""
    known, rest = digits[:_MAX_DIGITS], digits[_MAX_DIGITS:]
    number = (int(known) + bool(rest.strip("0"))) * scale.numerator
    power = max(-2 * _MAX_DIGITS, min(power + len(rest) + 9, _MAX_DIGITS))
    factor: int = 10 ** abs(power)
    return -(-number * factor // scale.denominator if power >= 0 else -number // (scale.denominator * factor))


def parse_memory(text: str) -> int:
    """Returns the bytes that ``text`` names, with a suffix that makes sense for memory: what the schemas of
    our own API and inventories take, which is less than Kubernetes reads.

    Raises:
        ValueError: ``text`` is not a quantity of memory, or not a whole number of bytes.
    """
    match = _MEMORY.fullmatch(text)
    number, suffix = match.groups() if match else ("", "")
    scale = _MEMORY_BYTES.get(suffix or "")
    if not number or scale is None:
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
    """Returns the sum; binary notation where all are binary, else decimal. Each is read by ``read_amount``.

    >>> sum_amounts(["500m", "1"])
    '1500m'
    >>> sum_amounts(["256Mi", "768Mi"])
    '1Gi'
    """
    given = tuple(amounts)
    return _known_sum(given) if sum(map(len, given)) <= _MAX_CACHED_TEXT else _sum(given)


def _sum(given: tuple[str, ...]) -> str:
    total = sum((read_amount(amount) for amount in given), Fraction(0))
    binary = bool(given) and all(amount.endswith("i") for amount in given)
    return _format_amount(total, _BINARY if binary else _DECIMAL)


_known_sum = lru_cache(maxsize=256)(_sum)
"""Pods of a whole cluster ask for few different amounts, and each is read several times."""


def _format_amount(total: Fraction, family: dict[str, Fraction]) -> str:
    """As the API server writes it."""
    for suffix in reversed(family):
        if total and (total / family[suffix]).denominator == 1:
            return f"{total // family[suffix]}{suffix}"
    return str(total.numerator) if total.denominator == 1 else f"{total // _DECIMAL['n']}n"
