"""Conditions, before and after they get their times. Source: ``metav1.Condition``."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from gpushare_core.api import bounds
from gpushare_core.api.api_object import ApiObject, Moment, bounded
from gpushare_core.api.timestamps import rfc3339
from gpushare_core.text.printable import MESSAGE_BYTES, printable

TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"


class Condition(ApiObject, frozen=True, kw_only=True):
    """One condition of the object: its status, since when, and why. Source: ``metav1.Condition``."""

    type: Annotated[str, bounded(bounds.text(316, bounds.CONDITION_TYPE))]
    status: Annotated[str, bounded({"enum": [TRUE, FALSE, UNKNOWN]})]
    reason: Annotated[str, bounded(bounds.text(1024, bounds.CONDITION_REASON))]
    message: Annotated[str, bounded(bounds.MESSAGE)]
    last_transition_time: Moment
    observed_generation: int = 0


ConditionList = Annotated[list[Condition], bounded(bounds.map_by("type", bounds.CONDITIONS))]


@dataclass(frozen=True, slots=True)
class ConditionState:
    """A condition before it gets its times: what programs decide."""

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
    states: Iterable[ConditionState], *, before: Iterable[Condition], generation: int, now: datetime
) -> list[Condition]:
    """Returns ``states`` with printable messages and with the time of their last transition: that of
    ``before`` where the status is the same, else ``now``."""
    known = {(condition.type, condition.status): condition.last_transition_time for condition in before}
    changed = rfc3339(now)
    return [
        Condition(
            type=state.type,
            status=state.status,
            reason=state.reason,
            message=printable(state.message, max_bytes=MESSAGE_BYTES),
            last_transition_time=known.get((state.type, state.status), changed),
            observed_generation=generation,
        )
        for state in states
    ]
