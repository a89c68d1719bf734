"""Clusters as ``kubectl gpushare status`` reads them: well, unless a test says otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from msgspec import Raw, convert
from msgspec.json import encode

from gpushare_cli.decide.objects.installed import InstalledDeployment, InstalledLease, ProgramPod
from gpushare_cli.decide.objects.node_state import NodeState, NodeStateReader
from gpushare_cli.decide.objects.policy import ObservedPolicy
from gpushare_cli.decide.objects.unplaced_pod import UnplacedPod
from gpushare_cli.decide.problems.facts import StatusFacts
from gpushare_core.text.json_object import Json

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
VERSION = "0.4.0"


def condition(type_: str, status: str = "True", reason: str = "AsExpected", message: str = "") -> Json:
    return {"type": type_, "status": status, "reason": reason, "message": message}


WELL_NODE = (
    condition("Registered"),
    condition("CardsHealthy"),
    condition("CardsCordoned", "False"),
    condition("LedgerInSync"),
    condition("UnitTooFine", "False"),
    condition("UnitChangeBlocked", "False"),
)
WELL_POLICY = (
    condition("Ready"),
    condition("NodesReady"),
    condition("SchedulerConfigured"),
    condition("Conflicted", "False"),
    condition("UnitChangeBlocked", "False"),
    condition("Degraded", "False"),
    condition("BooksAgree"),
)


def _with(conditions: Sequence[Json], changed: Sequence[Json]) -> list[Json]:
    by_type = {found["type"]: found for found in conditions}
    return list((by_type | {found["type"]: found for found in changed}).values())


def node_object(
    *changed: Json, name: str = "gpu-1", cards: Sequence[Json] = ({"index": 0, "units": 16},), **status: Any
) -> Json:
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUShareNode",
        "metadata": {"name": name, "generation": 1, "uid": f"uid-{name}"},
        "spec": {"policy": "default", "mode": "Memory"},
        "status": {
            "observedGeneration": 1,
            "pluginVersion": VERSION,
            "conditions": _with(WELL_NODE, changed),
            "cards": [{"uuid": f"GPU-{name}-{card['index']}", "health": "Healthy", **card} for card in cards],
            **status,
        },
    }


def policy_object(*changed: Json, name: str = "default", deleting: bool = False, **status: Any) -> Json:
    deletion = {"deletionTimestamp": "2026-05-01T11:59:00Z"} if deleting else {}
    return {
        "apiVersion": "gpushare.io/v1alpha1",
        "kind": "GPUSharePolicy",
        "metadata": {"name": name, "generation": 1, **deletion},
        "spec": {"memoryUnit": "1Gi", "nodes": [{"names": ["gpu-1"], "mode": "Memory"}]},
        "status": {
            "observedGeneration": 1,
            "backend": "KubeScheduler",
            "conditions": _with(WELL_POLICY, changed),
            "nodes": {"enabled": 1, "ready": 1},
            "cards": {"total": 1, "healthy": 1},
            "units": {"total": 16, "allocated": 4, "unit": "1Gi", "summary": "4/16"},
            "memory": {"total": "16Gi", "allocated": "4Gi", "used": "0"},
            "versions": {"operator": VERSION, "plugin": VERSION, "extender": VERSION, "hostctl": VERSION},
            **status,
        },
    }


def program_object(
    component: str, *, version: str = VERSION, ready: bool = True, waiting: str = "", name: str = ""
) -> Json:
    state = {"waiting": {"reason": waiting}} if waiting else {}
    return {
        "metadata": {
            "name": name or f"gpushare-{component}",
            "namespace": "gpushare-system",
            "labels": {"app.kubernetes.io/component": component, "app.kubernetes.io/version": version},
        },
        "spec": {"nodeName": "control-plane-1"},
        "status": {"phase": "Running", "containerStatuses": [{"ready": ready, "state": state}]},
    }


def deployment_object(*, replicas: int = 1, ready: int = 1) -> Json:
    labels = {
        "app.kubernetes.io/name": "gpushare",
        "app.kubernetes.io/component": "operator",
        "app.kubernetes.io/version": VERSION,
    }
    return {
        "metadata": {"name": "gpushare-operator", "namespace": "gpushare-system", "labels": labels},
        "spec": {"replicas": replicas},
        "status": {"readyReplicas": ready},
    }


def lease_object(
    name: str = "gpushare-operator",
    *,
    renewed: str = "2026-05-01T11:59:55.000000Z",
    holder: str = "operator-1",
    annotations: Mapping[str, str] | None = None,
) -> Json:
    return {
        "metadata": {"name": name, "namespace": "gpushare-system", "annotations": dict(annotations or {})},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 30, "renewTime": renewed},
    }


def unplaced_object(
    name: str,
    *,
    resource: str = "gpushare.io/memory",
    created: str = "2026-05-01T11:50:00Z",
    node: str = "",
) -> Json:
    return {
        "metadata": {"name": name, "namespace": "ml", "creationTimestamp": created},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"limits": {resource: "4"}}}],
        },
        "status": {"phase": "Pending"},
    }


def nodes_of(*objects: Json) -> list[NodeState]:
    reader = NodeStateReader()
    return [reader.read(Raw(encode(found))) for found in objects]


def policies_of(*objects: Json) -> list[ObservedPolicy]:
    return [convert(found, ObservedPolicy) for found in objects]


def pods_of(*objects: Json) -> list[ProgramPod]:
    return [convert(found, ProgramPod) for found in objects]


def unplaced_of(*objects: Json) -> list[UnplacedPod]:
    return [convert(found, UnplacedPod) for found in objects]


def lease_of(found: Json) -> InstalledLease:
    return convert(found, InstalledLease)


def deployment_of(found: Json) -> InstalledDeployment:
    return convert(found, InstalledDeployment)


WELL = StatusFacts(
    now=NOW,
    client_version=VERSION,
    policies=policies_of(policy_object()),
    nodes=nodes_of(node_object()),
    deployment=deployment_of(deployment_object()),
    lease=lease_of(lease_object()),
    pods=pods_of(program_object("operator"), program_object("extender")),
    kubernetes="v1.36.3",
)


def facts(**changes: Any) -> StatusFacts:
    return replace(WELL, **changes)
