"""Snapshots for the operator's tests, in a line or two."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from gpushare_core.api.conditions import Condition
from gpushare_core.api.names import CONTROL_PLANE_LABEL, FINALIZER, MODE_LABEL, POLICY_LABEL, SCHEDULER_LABEL
from gpushare_core.api.policy import PolicySpec
from gpushare_operator.cluster.objects import (
    DaemonSetView,
    JobView,
    NodeView,
    PodView,
    PolicyView,
    ShareNodeView,
)
from gpushare_operator.cluster.snapshot import Snapshot
from gpushare_operator.desired.daemon_sets import extender_daemon_set, plugin_daemon_set
from gpushare_operator.desired.hostctl_job import Action, work_hash
from gpushare_operator.desired.installation import Installation
from gpushare_operator.desired.names import EXTENDER, EXTENDER_NAME, HOSTCTL, PLUGIN, job_name, plugin_name
from gpushare_operator.desired.share_nodes import share_node_spec

INSTALLATION = Installation(image="gpushare:test")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)

Json = dict[str, Any]

SIMULATED: Json = {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]}


def rule(*names: str, **extra: Any) -> Json:
    """Selects nodes by name, or by ``selector``."""
    chosen = {"names": list(names)} if names else {}
    return {**chosen, "devices": SIMULATED, **extra}


def spec(*rules: Json, **extra: Any) -> PolicySpec:
    return PolicySpec.model_validate({"nodes": list(rules), **extra})


def policy(name: str = "default", *rules: Json, created: int = 0, **extra: Any) -> PolicyView:
    """A policy that was made ``created`` minutes after noon and has our finalizer."""
    given = {
        "uid": f"uid-{name}",
        "resource_version": "7",
        "created": (NOW + timedelta(minutes=created)).isoformat(),
        "finalizers": (FINALIZER,),
        "spec": spec(*(rules or (rule("gpu-1"),))),
    }
    return PolicyView(name=name, **{**given, **extra})


def node(name: str, policy: str = "", labels: Mapping[str, str] | None = None, **extra: Any) -> NodeView:
    """With the labels of ``policy`` if one is named."""
    ours = {POLICY_LABEL: policy, MODE_LABEL: "Memory"} if policy else {}
    return NodeView(**{"name": name, "uid": f"uid-{name}", "labels": {**ours, **(labels or {})}, **extra})


def control_plane(name: str = "cp", **extra: Any) -> NodeView:
    """Marked, as it is from the first moment at which its scheduler may be edited."""
    return node(name, labels={CONTROL_PLANE_LABEL: "", SCHEDULER_LABEL: "connected"}, **extra)


def untouched(name: str = "cp") -> NodeView:
    return node(name, labels={CONTROL_PLANE_LABEL: ""})


def share(name: str, owner: PolicyView, **extra: Any) -> ShareNodeView:
    """As the operator makes it for the first rule of ``owner``, and registered."""
    if owner.spec is None:
        raise ValueError("a policy without a spec has no nodes")
    given = {
        "uid": f"uid-share-{name}",
        "owners": (owner.uid,),
        "spec": share_node_spec(owner, owner.spec.nodes[0]),
        "observed_generation": 1,
        "conditions": said("Registered"),
        "units": (32, 0),
        "memory": ("32Gi", "0", "0"),
        "cards": 2,
    }
    return ShareNodeView(name=name, **{**given, **extra})


def said(kind: str, message: str = "", *, status: str = "True") -> dict[str, Condition]:
    moment = "2026-11-21T11:00:00Z"
    told = Condition(type=kind, status=status, reason="Because", message=message, last_transition_time=moment)
    return {kind: told}


def plugins(owner: PolicyView, **extra: Any) -> DaemonSetView:
    """The policy's DaemonSet as it should be."""
    body = plugin_daemon_set(owner, INSTALLATION)
    return DaemonSetView(
        **{"name": plugin_name(owner.name), "uid": "uid-ds", "policy": owner.name, "body": body, **extra}
    )


def extender(**extra: Any) -> DaemonSetView:
    return DaemonSetView(
        **{"name": EXTENDER_NAME, "uid": "uid-ext", "body": extender_daemon_set(INSTALLATION), **extra}
    )


def plugin_pod(on: str, policy: str = "default", **extra: Any) -> PodView:
    return PodView(
        **{"name": f"plugin-{on}", "component": PLUGIN, "policy": policy, "node": on, "ready": True, **extra}
    )


def extender_pod(on: str = "cp", **extra: Any) -> PodView:
    return PodView(**{"name": f"extender-{on}", "component": EXTENDER, "node": on, "ready": True, **extra})


def job(action: Action, on: str = "cp", sequence: int = 1, **extra: Any) -> JobView:
    given = {
        "uid": f"uid-job-{sequence}",
        "action": str(action),
        "node": on,
        "node_uid": f"uid-{on}",
        "sequence": sequence,
        "spec_hash": work_hash(action),
    }
    return JobView(name=job_name(action, on, sequence), **{**given, **extra})


def installed(on: str = "cp", sequence: int = 1, **extra: Any) -> JobView:
    return job(Action.INSTALL, on, sequence, **{"complete": True, "finished": NOW, **extra})


def restored(on: str = "cp", sequence: int = 2, **extra: Any) -> JobView:
    return job(Action.RESTORE, on, sequence, **{"complete": True, "finished": NOW, **extra})


def failed(action: Action, *, ago: float, sequence: int = 1, on: str = "cp") -> JobView:
    finished = NOW - timedelta(seconds=ago)
    return job(action, on, sequence, failed=True, failure="BackoffLimitExceeded", finished=finished)


def job_pod(of: JobView, exit_code: int, termination: str = "") -> PodView:
    return PodView(
        name=f"{of.name}-x",
        component=HOSTCTL,
        job=of.name,
        node=of.node,
        exit_code=exit_code,
        termination=termination,
    )


Seen = PolicyView | NodeView | ShareNodeView | DaemonSetView | JobView | PodView

FIELDS: dict[type, str] = {
    PolicyView: "policies",
    NodeView: "nodes",
    ShareNodeView: "share_nodes",
    DaemonSetView: "daemon_sets",
    JobView: "jobs",
    PodView: "pods",
}


def snapshot(*seen: Seen | Iterable[Seen]) -> Snapshot:
    """A cluster in which exactly this is seen."""
    found: dict[str, dict[str, Any]] = {}
    for each in seen:
        for view in each if isinstance(each, Iterable) else (each,):
            found.setdefault(FIELDS[type(view)], {})[view.name] = view
    return Snapshot(**found)


def serving(owner: PolicyView, *names: str) -> list[Seen]:
    """All that a policy in force has made on the workers ``names`` and on one control plane."""
    workers: list[Seen] = []
    for name in names:
        workers += [node(name, owner.name, offered=("gpushare.io/memory",)), share(name, owner)]
        workers.append(plugin_pod(name, owner.name))
    return [owner, *workers, plugins(owner), control_plane(), extender(), extender_pod(), installed()]
