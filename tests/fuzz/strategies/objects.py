"""Objects of the API server as a watch may deliver them: of every kind, right and wrong."""

from typing import Any

from hypothesis import strategies as st
from tests.fuzz.strategies import annotations
from tests.fuzz.strategies.odd_json import mutated, odd_values
from tests.samples.operator import VOLCANO_CONFIG

from gpushare_core.text.json_object import Json

META: Json = {
    "name": "n1",
    "namespace": "default",
    "uid": "uid-a",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-11-21T10:00:00Z",
    "labels": {"gpushare.io/policy": "default", "gpushare.io/sequence": "3"},
    "annotations": {"gpushare.io/port": "32766"},
    "ownerReferences": [{"kind": "DaemonSet", "uid": "u", "controller": True}],
    "managedFields": [
        {
            "manager": "m",
            "time": "2026-11-21T10:00:00Z",
            "fieldsV1": {"f:status": {"f:capacity": {}}, 'k:{"type":"Ready"}': {}},
        }
    ],
    "finalizers": ["gpushare.io/policy"],
}
_CONDITION = {
    "type": "Registered",
    "status": "True",
    "reason": "R",
    "message": "failed with exit code 3 matching",
    "lastTransitionTime": "2026-11-21T10:00:00Z",
}
_STATE = {
    "terminated": {"exitCode": 3, "message": '{"message": "x"}'},
    "waiting": {"reason": "r"},
    "running": {"startedAt": "2026-11-21T10:00:00Z"},
}
_CONTAINER = {
    "name": "main",
    "command": ["kube-scheduler", "--config=/x"],
    "resources": {"limits": {"gpushare.io/memory": "4", "cpu": "1"}, "requests": {"cpu": "500m"}},
}
POD: Json = {
    "metadata": META,
    "spec": {
        "nodeName": "n1",
        "priority": 3,
        "containers": [_CONTAINER],
        "initContainers": [{**_CONTAINER, "name": "i", "restartPolicy": "Always"}],
    },
    "status": {
        "phase": "Running",
        "reason": "",
        "startTime": "2026-11-21T10:00:00Z",
        "conditions": [{**_CONDITION, "type": "Ready"}],
        "containerStatuses": [
            {"name": "main", "containerID": "containerd://" + "a" * 64, "state": _STATE, "lastState": _STATE}
        ],
        "initContainerStatuses": [],
    },
}
NODE: Json = {
    "metadata": META,
    "spec": {"taints": [{"key": "gpushare.io/starting", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"gpushare.io/memory": "32", "aliyun.com/gpu-count": "2"},
        "allocatable": {"gpushare.io/memory": "32"},
        "conditions": [{**_CONDITION, "type": "Ready"}],
    },
}
SHARE_NODE: Json = {
    "metadata": META,
    "spec": {
        "policy": "default",
        "mode": "Memory",
        "memoryUnit": "1Gi",
        "dialect": "gpushare.io",
        "strategy": "Binpack",
        "devices": {"source": "Simulated", "simulated": [{"count": 2, "memory": "16Gi"}]},
    },
    "status": {
        "memoryUnit": "1Gi",
        "dialect": "gpushare.io",
        "conditions": [_CONDITION],
        "units": {"total": 32, "allocated": 4},
        "memory": {"total": "32Gi", "allocated": "4Gi", "used": "1Gi"},
        "resources": [{"resource": "memory", "total": 32}],
        "cards": [
            {
                "index": 0,
                "uuid": "GPU-0",
                "units": 16,
                "memory": "16Gi",
                "health": "Healthy",
                "allocatedUnits": 4,
                "firstUnit": 0,
                "lock": "Memory",
                "offers": {"memory": 16, "slice": 2, "card": 1},
                "pods": [
                    {"namespace": "default", "name": "a", "uid": "uid-a", "container": "main", "units": 4}
                ],
            },
            {
                "index": 1,
                "uuid": "GPU-1",
                "units": 16,
                "memory": "16Gi",
                "health": "Unhealthy",
                "cordoned": True,
            },
        ],
        "faults": [
            {
                "uuid": "GPU-1",
                "reason": "Xid79",
                "since": "2026-11-21T10:00:00Z",
                "lastSeen": "2026-11-21T10:00:00Z",
                "quietSince": "x",
                "quietSeconds": 600,
                "relapses": 1,
            }
        ],
    },
}
POLICY: Json = {
    "metadata": META,
    "spec": {
        "memoryUnit": "1Gi",
        "nodes": [{"names": ["n1"], "mode": "Memory", "devices": {"source": "NVML"}}],
    },
    "status": {"observedGeneration": 1, "conditions": [_CONDITION], "nodes": {"enabled": 1}},
}
DAEMON_SET: Json = {
    "metadata": META,
    "spec": {"template": {"spec": {"containers": [_CONTAINER]}}},
    "status": {},
}
DEPLOYMENT: Json = {
    "metadata": META,
    "spec": {"replicas": 2},
    "status": {"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "readyReplicas": 2},
}
JOB: Json = {
    "metadata": {
        **META,
        "annotations": {"gpushare.io/asked": '["a"]', "gpushare.io/node": "n1", "gpushare.io/port": "1,2"},
    },
    "spec": {},
    "status": {"conditions": [{**_CONDITION, "type": "Failed"}, {**_CONDITION, "type": "FailureTarget"}]},
}
LEASE: Json = {
    "metadata": {**META, "annotations": {"gpushare.io/called-port": "32766"}},
    "spec": {"holderIdentity": "a"},
}
BACKUP: Json = {
    "metadata": META,
    "data": {
        "namespace": "v",
        "configMap": "c",
        "key": "k",
        "original": VOLCANO_CONFIG,
        "written": "x",
        "additions": "deviceshare=plugin,predicates=switch",
    },
}
OF_KIND: dict[str, Json] = {
    "gpusharepolicies": POLICY,
    "nodes": NODE,
    "gpusharenodes": SHARE_NODE,
    "daemonsets": DAEMON_SET,
    "deployments": DEPLOYMENT,
    "jobs": JOB,
    "pods": POD,
    "leases": LEASE,
    "configmaps": BACKUP,
}
"""By the plural of the operator's table of kinds."""


@st.composite
def annotated(draw: st.DrawFn, body: Json) -> Json:
    """``body`` with annotations of every dialect, and with odd values in them."""
    found: dict[str, Any] = {**draw(annotations.on_pods()), **draw(annotations.on_share_nodes)}
    metadata = {**body["metadata"], "annotations": {**body["metadata"].get("annotations", {}), **found}}
    return {**body, "metadata": metadata}


def watched(body: Json) -> st.SearchStrategy[Any]:
    """``body`` as a watch may bring it."""
    return mutated(body, most=4) | annotated(body) | annotated(body).flatmap(mutated) | odd_values
