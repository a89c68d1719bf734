"""Who undoes what the operator does, in words for people."""

from gpushare_core.api.names import FIELD_MANAGER
from gpushare_operator.cluster.managed_fields import Path, managers
from gpushare_operator.cluster.objects import DaemonSetObject
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.decide.actions import Action, ApplyDaemonSet, ApplyShareNode, CreateJob
from gpushare_operator.desired.drift import differences

SHOWN = 3
"""Fields that are named."""


def rival(snapshot: Snapshot, action: Action) -> str:
    """Returns who makes ``action`` necessary again; empty when nothing tells."""
    match action:
        case ApplyDaemonSet():
            present = snapshot.daemon_sets.get(action.name)
            return _rival_of(present, differences(present.body, action.body)) if present else ""
        case ApplyShareNode():
            share = snapshot.share_nodes.get(action.node)
            paths = differences({"spec": share.spec}, {"spec": action.body["spec"]}) if share else []
            return f"somebody changes {_named(paths)}" if paths else ""
        case CreateJob():
            return "somebody deletes it, or takes our labels off it"
        case _:
            return ""


def _rival_of(present: DaemonSetObject, paths: list[Path]) -> str:
    if not paths:
        return ""
    owners = {name for path in paths for name in managers(present.managed_fields, present.body, path)}
    others = sorted(owners - {FIELD_MANAGER})
    # What an admission webhook changes in our own request is ours by name.
    who = ", ".join(others) or "an admission webhook"
    return f"{who} changes {_named(paths)}"


def _named(paths: list[Path]) -> str:
    return ", ".join(".".join(str(step) for step in path) for path in paths[:SHOWN])
