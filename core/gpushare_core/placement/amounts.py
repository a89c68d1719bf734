"""Exact amounts and their sums, in every notation that Kubernetes has for quantities.

Source: ``k8s.io/apimachinery/pkg/api/resource``: plain, decimal (``500m``, ``2k``), binary (``4Gi``) and
exponent (``1e3``) notation.
"""

import re
from collections.abc import Iterable
from fractions import Fraction

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
_AMOUNT = re.compile(r"([0-9]{1,40}(?:\.[0-9]{0,40})?)(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,2}))?")


def sum_amounts(amounts: Iterable[str]) -> str:
    """Add ``amounts`` up; binary notation where all are binary, else decimal; rounded up to billionths.

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
    return _format(total, _BINARY if binary else _DECIMAL)


def parse_amount(amount: str) -> Fraction:
    """Raises ``ValueError`` for what is no amount, or a negative one."""
    match = _AMOUNT.fullmatch(amount)
    if match is None:
        raise ValueError(f"{amount!r} is not an amount such as 2, 500m or 4Gi")
    number, suffix, exponent = match.groups()
    return Fraction(number) * (_SUFFIXES[suffix or ""] if exponent is None else Fraction(10) ** int(exponent))


def _format(total: Fraction, family: dict[str, Fraction]) -> str:
    """In the largest suffix that leaves a whole number, as the API server writes it."""
    for suffix in reversed(family):
        if total and (total / family[suffix]).denominator == 1:
            return f"{total // family[suffix]}{suffix}"
    if total.denominator == 1:
        return str(total.numerator)
    return f"{-(-total // _DECIMAL['n'])}n"
