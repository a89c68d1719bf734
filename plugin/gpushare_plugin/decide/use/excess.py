"""Containers that use more memory of a card than they asked for: the condition, and Events on their pods."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpushare_core.api.conditions import (
    ConditionState,
    condition_false,
    condition_true,
    condition_unknown,
)
from gpushare_core.api.enums import MeasurementScope
from gpushare_core.api.names import MEMORY_EXCEEDED
from gpushare_core.api.served import Problem
from gpushare_core.api.share_node import NodeSpec
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.units.quantity_text import quantity_text
from gpushare_plugin.decide.use.container_use import ContainerShare, MeasuredUse, exceeding
from gpushare_plugin.decide.use.reported_use import ReportedUse

EXCEEDED, WITHIN_REQUEST = "MemoryExceeded", "MemoryWithinRequest"
"""Reasons of Events."""
NOT_MEASURED = Problem("NotMeasured", "nothing was measured since the plugin's start: wait for the next look")
MAX_NAMED = 10
"""Containers in a condition: more would not be read."""


@dataclass(frozen=True, slots=True)
class Excess:
    """One container that uses more of one card than it asked for."""

    holding: ContainerShare
    requested: int
    """Bytes."""
    used: int
    """Bytes, as the status has them."""

    def __str__(self) -> str:
        key = self.holding
        return (
            f"container {key.container} of pod {key.pod} uses {quantity_text(self.used)} of card {key.card}"
            f" and asked for {quantity_text(self.requested)}"
        )


def excesses(use: ReportedUse, requested: Mapping[ContainerShare, int]) -> list[Excess]:
    """Returns them in the order of pods."""
    found = (Excess(key, requested[key], used) for key, used in exceeding(use.containers, requested).items())
    return sorted(found, key=lambda excess: excess.holding)


def memory_exceeded(measured: MeasuredUse | None, found: Sequence[Excess]) -> ConditionState:
    """Returns the condition of a node whose containers are measured."""
    if measured is None or measured.problem:
        problem = measured.problem if measured and measured.problem else NOT_MEASURED
        return condition_unknown(MEMORY_EXCEEDED, problem.reason, problem.message)
    if not found:
        return condition_false(MEMORY_EXCEEDED, "WithinRequests")
    more = f"; and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    message = (
        f"{'; '.join(map(str, found[:MAX_NAMED]))}{more}; other pods on the card may get no memory: let"
        " these pods ask for more, or their programs take less"
    )
    return condition_true(MEMORY_EXCEEDED, "RequestExceeded", message)


def excess_conditions(spec: NodeSpec, measured: MeasuredUse | None, use: ReportedUse) -> list[ConditionState]:
    """Returns the condition about what containers use, where that is measured."""
    if spec.measurement.scope is not MeasurementScope.CONTAINERS:
        return []
    return [memory_exceeded(measured, excesses(use, measured.requested if measured else {}))]


def excess_events(
    before: ReportedUse, now: ReportedUse, requested: Mapping[ContainerShare, int]
) -> list[PodEvent]:
    """Returns one Event for each excess that begins, and one for each that ends while its units are held."""
    old, new = exceeding(before.containers, requested), excesses(now, requested)
    ended = old.keys() - {excess.holding for excess in new}
    return [*(_begun(excess) for excess in new if excess.holding not in old), *_ended(ended)]


def _begun(excess: Excess) -> PodEvent:
    note = f"{excess}; other pods on the card may get no memory: ask for more, or let the program take less"
    return PodEvent(pod=excess.holding.pod, uid=excess.holding.uid, reason=EXCEEDED, note=note, warning=True)


def _ended(holdings: Iterable[ContainerShare]) -> Iterator[PodEvent]:
    for key in sorted(holdings):
        note = f"container {key.container} uses no more of card {key.card} than it asked for"
        yield PodEvent(pod=key.pod, uid=key.uid, reason=WITHIN_REQUEST, note=note)
