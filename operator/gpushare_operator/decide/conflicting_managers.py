"""Who undoes the operator's changes, in words for people."""

from gpushare_core.api.names import FIELD_MANAGER
from gpushare_core.text.json_object import Json
from gpushare_operator.actions import (
    Action,
    ApplyDaemonSet,
    ApplyDeployment,
    ApplyShareNode,
    CreateJob,
)
from gpushare_operator.cluster.managed_fields import Path, managers
from gpushare_operator.cluster.objects import DaemonSetObject, DeploymentObject
from gpushare_operator.cluster.snapshot import ClusterSnapshot
from gpushare_operator.desired.drift import differences
from gpushare_operator.desired.share_nodes import spec_differences

MAX_SHOWN = 3
"""Fields that a message names."""


def conflicting_manager(snapshot: ClusterSnapshot, action: Action) -> str:
    """Returns who makes ``action`` necessary again; empty if nothing shows it."""
    match action:
        case ApplyDaemonSet():
            return _manager_of(snapshot.daemon_sets.get(action.name), action.body)
        case ApplyDeployment():
            return _manager_of(snapshot.deployments.get(action.name), action.body)
        case ApplyShareNode():
            share = snapshot.share_nodes.get(action.node)
            paths = spec_differences(share.spec, action.body["spec"]) if share else []
            return f"somebody changes {_named(paths)}" if paths else ""
        case CreateJob():
            return "somebody deletes it, or removes gpushare's labels from it"
        case _:
            return ""


def _manager_of(present: DaemonSetObject | DeploymentObject | None, desired: Json) -> str:
    paths = differences(present.body, desired) if present else []
    if present is None or not paths:
        return ""
    owners = {name for path in paths for name in managers(present.managed_fields, present.body, path)}
    # Fields that an admission webhook changes in our own request count as the operator's.
    who = ", ".join(sorted(owners - {FIELD_MANAGER})) or "an admission webhook"
    return f"{who} changes {_named(paths)}"


def _named(paths: list[Path]) -> str:
    return ", ".join(".".join(str(step) for step in path) for path in paths[:MAX_SHOWN])
