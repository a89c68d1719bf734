"""Containers that use more memory of a card than they asked for: the condition, and Events on their pods."""

from collections.abc import Mapping

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
NOT_MEASURED = Problem(
    "NotMeasured", "nothing was measured since the plugin's start: wait for the next check"
)
MAX_NAMED = 10
"""Containers in a condition's message."""


def _sentence(share: ContainerShare, requested: int, used: int) -> str:
    return (
        f"container {share.container} of pod {share.pod} uses {quantity_text(used)} of card {share.card}"
        f" and asked for {quantity_text(requested)}"
    )


def excess_conditions(spec: NodeSpec, measured: MeasuredUse | None, use: ReportedUse) -> list[ConditionState]:
    """Returns the condition about the memory that containers use, where that is measured."""
    if spec.measurement.scope is not MeasurementScope.CONTAINERS:
        return []
    if measured is None or measured.problem:
        problem = measured.problem if measured and measured.problem else NOT_MEASURED
        return [condition_unknown(MEMORY_EXCEEDED, problem.reason, problem.message)]
    found = sorted(exceeding(use.containers, measured.requested).items())
    if not found:
        return [condition_false(MEMORY_EXCEEDED, "WithinRequests")]
    named = [_sentence(share, measured.requested[share], used) for share, used in found[:MAX_NAMED]]
    more = f"; and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    message = (
        f"{'; '.join(named)}{more}; other pods on the card may get no memory: ask"
        " for more in these pods, or limit what their programs use"
    )
    return [condition_true(MEMORY_EXCEEDED, "RequestExceeded", message)]


def excess_events(
    before: ReportedUse, now: ReportedUse, requested: Mapping[ContainerShare, int]
) -> list[PodEvent]:
    """Returns an Event for each excess that begins, and for each that ends while its units are held."""
    old, new = (exceeding(use.containers, requested) for use in (before, now))
    return [
        *(_begun(share, requested[share], new[share]) for share in sorted(new.keys() - old.keys())),
        *(_ended(share) for share in sorted(old.keys() - new.keys())),
    ]


def _begun(share: ContainerShare, requested: int, used: int) -> PodEvent:
    sentence = _sentence(share, requested, used)
    note = (
        f"{sentence}; other pods on the card may get no memory: ask for more, or limit what the program uses"
    )
    return PodEvent(pod=share.pod, uid=share.uid, reason=EXCEEDED, note=note, warning=True)


def _ended(share: ContainerShare) -> PodEvent:
    note = f"container {share.container} no longer uses more of card {share.card} than it asked for"
    return PodEvent(pod=share.pod, uid=share.uid, reason=WITHIN_REQUEST, note=note)
