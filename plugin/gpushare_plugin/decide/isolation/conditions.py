"""What people are told of isolation: conditions of the GPUShareNode, and Events on pods."""

from collections.abc import Iterable, Sequence

from gpushare_core.api.conditions import (
    ConditionState,
    condition_false,
    condition_true,
    condition_unknown,
)
from gpushare_core.api.enums import MemoryIsolation
from gpushare_core.api.names import ISOLATION_IN_FORCE, ISOLATION_READY, SHARE_TOO_SMALL
from gpushare_plugin.decide.held.pod_events import PodEvent
from gpushare_plugin.decide.isolation.kind import IsolatedShare, IsolationFinding
from gpushare_plugin.decide.isolation.node_isolation import NOT_DECIDED, Findings, IsolationDecision

NOT_IN_FORCE = "IsolationNotInForce"
"""Reason of the Event and of the condition."""
_CONSEQUENCES = {NOT_IN_FORCE: ": it may take more memory of the card than it asked for", SHARE_TOO_SMALL: ""}
MAX_NAMED = 10
"""Containers in a condition's message."""


def isolation_conditions(
    isolation: IsolationDecision, found: Findings | None, recorded: Iterable[str]
) -> list[ConditionState]:
    """``recorded``: types of conditions that the status has: of these nothing is known until the plugin has
    looked once."""
    starting = {
        type_: condition_unknown(type_, "Starting", "the plugin has just started, and has not checked yet")
        for type_ in recorded
        if type_ in (ISOLATION_READY, ISOLATION_IN_FORCE)
    }
    if isolation is NOT_DECIDED:
        return [*starting.values()]
    if isolation.asked is MemoryIsolation.NONE:
        return []
    unseen = [starting[ISOLATION_IN_FORCE]] if ISOLATION_IN_FORCE in starting else []
    return [_ready(isolation), *(unseen if found is None else _in_force(found))]


def _ready(isolation: IsolationDecision) -> ConditionState:
    if problem := isolation.problem:
        message = (
            f"isolation {isolation.asked} is not possible here: {problem.message}; until then no new pod"
            f" gets units here, and running pods stay"
        )
        return condition_false(ISOLATION_READY, problem.reason, message)
    return condition_true(ISOLATION_READY, isolation.asked.value)


def _in_force(found: Findings) -> Iterable[ConditionState]:
    """Yields nothing where no container was given isolation."""
    if broken := [pair for pair in found if pair[1].in_force is False]:
        message = (
            f"{_named(broken)}; fix that, then delete these pods, so that their controllers create them again"
        )
        yield condition_false(ISOLATION_IN_FORCE, NOT_IN_FORCE, message)
    elif unknown := [pair for pair in found if pair[1].in_force is None]:
        yield condition_unknown(ISOLATION_IN_FORCE, "NotKnown", _named(unknown))
    elif found:
        noted = [pair for pair in found if pair[1].seen]
        reason = SHARE_TOO_SMALL if any(finding.is_useless for _, finding in noted) else "InForce"
        yield condition_true(ISOLATION_IN_FORCE, reason, _named(noted))


def _named(found: Sequence[tuple[IsolatedShare, IsolationFinding]]) -> str:
    ordered = sorted(found, key=lambda pair: pair[0].share)
    named = [_sentence(isolated, finding) for isolated, finding in ordered[:MAX_NAMED]]
    more = f"; and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return "; ".join(named) + more


def _sentence(isolated: IsolatedShare, finding: IsolationFinding) -> str:
    share = isolated.share
    return (
        f"container {share.container} of pod {share.pod} on card {share.card}, given {isolated.given.kind}:"
        f" {finding.seen}"
    )


def isolation_events(before: Findings, found: Findings) -> list[PodEvent]:
    """Returns an Event for each share that does not do what it is for, and did so ``before``."""
    known = {(isolated.share, _reason(finding)) for isolated, finding in before}
    return [
        PodEvent(
            pod=isolated.share.pod,
            uid=isolated.share.uid,
            reason=reason,
            note=_sentence(isolated, finding) + _CONSEQUENCES[reason],
            warning=True,
            action="Isolating",
            occasion=f"{isolated.share.container}/{isolated.share.card}",
        )
        for isolated, finding in found
        if (reason := _reason(finding)) and (isolated.share, reason) not in known
    ]


def _reason(finding: IsolationFinding) -> str:
    """Returns that of the Event; empty where there is nothing to tell."""
    if finding.in_force is False:
        return NOT_IN_FORCE
    return SHARE_TOO_SMALL if finding.is_useless else ""
