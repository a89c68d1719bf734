"""The condition about Volcano's scheduler."""

from collections.abc import Mapping

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.served import Problem
from gpushare_operator.backends.teardown_step import Situation
from gpushare_operator.backends.volcano.connection import (
    FORBIDDEN,
    VolcanoState,
    assess,
    edited_location,
    why_not_restored,
)
from gpushare_operator.desired.names import VOLCANO_BACKUP
from gpushare_operator.policies import conditions

RIGHTS = (
    "the operator lacks the rights to read and change it: kubectl apply -f manifests/volcano/rbac.yaml (for"
    " another namespace or name change it there first)"
)
STATES: Mapping[VolcanoState, tuple[str, str]] = {
    VolcanoState.UNREAD: (conditions.EDITING_CONFIG_MAP, "it is being read"),
    VolcanoState.MISSING: (
        conditions.CONFIG_MAP_MISSING,
        "it is not there: install Volcano, or name its scheduler's ConfigMap in scheduler.volcano",
    ),
    VolcanoState.FORBIDDEN: (conditions.CONFIG_MAP_FORBIDDEN, RIGHTS),
    VolcanoState.NO_KEY: (
        conditions.CONFIG_MAP_MISSING,
        "it has no key {key}: name the one that Volcano's scheduler reads in scheduler.volcano",
    ),
    VolcanoState.ELSEWHERE: (conditions.EDITING_CONFIG_MAP, "another one is being restored first"),
    VolcanoState.DUE: (conditions.EDITING_CONFIG_MAP, "GPU sharing is being switched on in it"),
}
"""State -> reason and message."""
ENABLED = (
    "GPU sharing is on in {location}; Volcano's scheduler reads it within two minutes, when the kubelet"
    " has updated the file in its pod"
)
HOW_TO_LET_GO = (
    "to leave it as it is, delete the backup of what was there:"
    " kubectl delete configmap -n {namespace} {backup}"
)


def condition(situation: Situation) -> ConditionState:
    found = assess(situation.snapshot)
    if found.state is VolcanoState.DONE:
        message = ENABLED.format(location=found.location)
        return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CONFIGURED, message)
    reason, message = STATES.get(found.state, (conditions.NEEDS_ATTENTION, found.problem))
    text = f"{found.location}: {message.format(key=found.location.key) if not found.problem else message}"
    return condition_false(conditions.SCHEDULER_CONFIGURED, reason, text)


def disconnecting(situation: Situation) -> Problem:
    location = edited_location(situation.snapshot)
    obstacle = why_not_restored(situation.snapshot)
    if not obstacle:
        return Problem(conditions.RESTORING, f"{location} is being restored")
    why = RIGHTS if obstacle == FORBIDDEN else obstacle
    how = HOW_TO_LET_GO.format(namespace=situation.installation.namespace, backup=VOLCANO_BACKUP)
    return Problem(conditions.RESTORE_FAILED, f"{location} cannot be restored: {why}; {how}")


def disconnected(_: Situation) -> Problem:
    return Problem(conditions.RESTORED, "Volcano's configuration has nothing of gpushare any more")
