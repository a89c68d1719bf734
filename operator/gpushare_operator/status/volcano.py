"""The condition about Volcano's scheduler."""

from collections.abc import Mapping
from datetime import datetime

from gpushare_core.api.conditions import ConditionState, condition_false, condition_true
from gpushare_core.api.enums import Backend
from gpushare_core.api.served import Problem
from gpushare_operator.cluster.objects import PolicyObject, VolcanoLocation
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.decide.backend_choice import needed_backend
from gpushare_operator.decide.volcano import (
    FORBIDDEN,
    VolcanoState,
    assess,
    edited_location,
    why_not_restored,
)
from gpushare_operator.desired.names import VOLCANO_BACKUP, Installation
from gpushare_operator.status import conditions

RIGHTS = (
    "the operator may not read or change it: kubectl apply -f manifests/volcano/rbac.yaml, where another"
    " namespace or name has to be written first"
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
    "GPU sharing is on in {location}; Volcano's scheduler reads it when its kubelet shows it in the pod,"
    " within two minutes"
)
HOW_TO_LET_GO = (
    "to leave it as it is, delete the backup of what was there:"
    " kubectl delete configmap -n {namespace} {backup}"
)


def volcano_configured(
    snapshot: ClusterSnapshot, policy: PolicyObject, installation: Installation, _: datetime
) -> ConditionState:
    if policy.deleting:
        problem = _going(snapshot, installation)
        return condition_false(conditions.SCHEDULER_CONFIGURED, problem.reason, problem.message)
    found = assess(snapshot)
    if found.state is VolcanoState.DONE:
        message = ENABLED.format(location=found.location)
        return condition_true(conditions.SCHEDULER_CONFIGURED, conditions.CONFIGURED, message)
    reason, message = STATES.get(found.state, (conditions.NEEDS_ATTENTION, found.problem))
    text = f"{found.location}: {message.format(key=found.location.key) if not found.problem else message}"
    return condition_false(conditions.SCHEDULER_CONFIGURED, reason, text)


def _going(snapshot: ClusterSnapshot, installation: Installation) -> Problem:
    if needed_backend(snapshot) is Backend.VOLCANO:
        return Problem(conditions.DELETING, "Volcano's scheduler stays as it is: other policies need it")
    location = edited_location(snapshot)
    if location is None:
        return Problem(conditions.RESTORED, "Volcano's configuration has nothing of gpushare any more")
    return _restoring(snapshot, location, installation)


def _restoring(snapshot: ClusterSnapshot, location: VolcanoLocation, installation: Installation) -> Problem:
    obstacle = why_not_restored(snapshot)
    if not obstacle:
        return Problem(conditions.RESTORING, f"{location} is being restored")
    why = RIGHTS if obstacle == FORBIDDEN else obstacle
    how = HOW_TO_LET_GO.format(namespace=installation.namespace, backup=VOLCANO_BACKUP)
    return Problem(conditions.RESTORE_FAILED, f"{location} cannot be restored: {why}; {how}")
