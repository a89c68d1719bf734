"""Conditions: what holds of an object, since when, and why. Source: ``metav1.Condition``."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeVar

from gpushare_core.api.timestamps import rfc3339
from gpushare_core.text.printable import MESSAGE_BYTES, printable

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


class DatedCondition(Protocol):
    """A condition as objects have it: what holds, since when, and why."""

    @property
    def type(self) -> str: ...
    @property
    def status(self) -> str: ...
    @property
    def last_transition_time(self) -> str: ...


C = TypeVar("C", bound=DatedCondition)


@dataclass(frozen=True, slots=True)
class ConditionState:
    """A condition before it gets its times: what decisions are made of."""

    type: str
    status: str
    reason: str
    message: str

    @property
    def is_true(self) -> bool:
        return self.status == TRUE


def condition_true(type_: str, reason: str, message: str = "") -> ConditionState:
    return ConditionState(type_, TRUE, reason, message)


def condition_false(type_: str, reason: str, message: str = "") -> ConditionState:
    return ConditionState(type_, FALSE, reason, message)


def condition_unknown(type_: str, reason: str, message: str = "") -> ConditionState:
    return ConditionState(type_, UNKNOWN, reason, message)


def dated_conditions(
    states: Iterable[ConditionState],
    *,
    before: Iterable[C],
    generation: int,
    now: datetime,
    of: Callable[..., C],
) -> list[C]:
    """Returns ``states`` with their times, and with messages that are printable.

    The last transition stays what it was in ``before`` where the status did not change, and is ``now``
    elsewhere.
    """
    known = {condition.type: condition for condition in before}
    return [
        of(
            type=state.type,
            status=state.status,
            reason=state.reason,
            message=printable(state.message, most_bytes=MESSAGE_BYTES),
            last_transition_time=_last_transition(state, known, now),
            observed_generation=generation,
        )
        for state in states
    ]


def _last_transition(state: ConditionState, known: Mapping[str, C], now: datetime) -> str:
    before = known.get(state.type)
    if before is None or before.status != state.status:
        return rfc3339(now)
    return before.last_transition_time
