"""What is measured, what it is to reach, and whether it does: values, decided without any cluster."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class NotMeasuredError(Exception):
    """A figure cannot be had; the text says why."""


class Bound(Enum):
    """On which side of a target's value it is reached. The value is how a table writes it."""

    AT_MOST = "<="
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure is to reach."""

    bound: Bound
    value: float

    def is_reached_by(self, measured: float) -> bool:
        return measured <= self.value if self.bound is Bound.AT_MOST else measured >= self.value


def at_most(value: float) -> Target:
    return Target(Bound.AT_MOST, value)


def at_least(value: float) -> Target:
    return Target(Bound.AT_LEAST, value)


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. Without a target it is there to explain the others.

    Raises:
        NotMeasuredError: ``measured`` is no finite number.
    """

    what: str
    measured: float
    unit: str = ""
    target: Target | None = None

    def __post_init__(self) -> None:
        if not math.isfinite(self.measured):
            raise NotMeasuredError(f"{self.what} is {self.measured}")

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None without one."""
        return self.target.is_reached_by(self.measured) if self.target else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one row in one stage: figures, or the reason why there are none."""

    row: str
    title: str
    stage: str
    figures: tuple[Figure, ...] = ()
    problem: str = ""
    seconds: float = 0.0

    @property
    def is_measured(self) -> bool:
        return not self.problem


def exit_code(outcomes: Iterable[Outcome]) -> int:
    """Returns 0 when every row was measured. A target that is missed is a result, not a failure."""
    found = list(outcomes)
    return 0 if found and all(figure.is_measured for figure in found) else 1


def ratio(over: float, under: float, what: str) -> float:
    """Returns ``over / under``.

    Raises:
        NotMeasuredError: nothing was measured to compare with.
    """
    if under <= 0:
        raise NotMeasuredError(f"{what}: there is nothing to compare with")
    return over / under
