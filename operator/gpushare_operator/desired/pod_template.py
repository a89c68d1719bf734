"""What all pods that the operator makes have in common."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gpushare_core.json_object import Json
from gpushare_operator.cluster.labels import HASH_ANNOTATION

EVERYWHERE = [{"operator": "Exists"}]
"""Tolerations: these pods belong to the node, whatever keeps others away."""


def confined(**extra: Any) -> Json:
    """Returns a container's security context: no more rights than its user has by itself."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        **extra,
    }


def host_path(name: str, path: str, *, kind: str = "Directory") -> Json:
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def mount(name: str, path: str) -> Json:
    return {"name": name, "mountPath": path}


def probe(path: str, port: int, *, host: str = "", period: int = 10) -> Json:
    """Returns an HTTP probe that fails after three refusals; ``period`` is in seconds."""
    target = {"path": path, "port": port, **({"host": host} if host else {})}
    return {"httpGet": target, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": 3}


def digest(content: Mapping[str, Any]) -> str:
    """Returns the same for equal content, whatever the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def with_digest(body: Json) -> Json:
    """Returns ``body`` with the digest of its spec: a field that a newer version no longer sets is drift,
    too."""
    annotations = {**body["metadata"].get("annotations", {}), HASH_ANNOTATION: digest(body["spec"])}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def daemon_set(
    name: str,
    *,
    namespace: str,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    pod: Json,
    owners: list[Json] | None = None,
) -> Json:
    """Returns a DaemonSet whose pods are replaced a tenth at a time."""
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return with_digest(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {**metadata, **({"ownerReferences": owners} if owners else {})},
            "spec": {
                "selector": {"matchLabels": dict(selector)},
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%"}},
                "template": {"metadata": {"labels": dict(labels)}, "spec": pod},
            },
        }
    )
