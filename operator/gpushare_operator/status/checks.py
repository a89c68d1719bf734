"""Ordered lists of checks: the first one that fails is what a person reads."""

from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")
Failure = TypeVar("Failure")


def first_failure(checks: Iterable[Callable[[T], Failure | None]], subject: T) -> Failure | None:
    """Returns what the first check says that finds something; None when all pass."""
    return next((failure for check in checks if (failure := check(subject))), None)
