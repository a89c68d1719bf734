"""Parts that all pods made by the operator have in common."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gpushare_operator.desired.names import HASH_ANNOTATION

Json = dict[str, Any]

EVERYWHERE = [{"operator": "Exists"}]
"""Tolerations: these pods belong to the node, whatever keeps others away."""


def confined(**extra: Any) -> Json:
    """Security context of a container: no more rights than the user has by itself."""
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
    """HTTP; fails after three refusals."""
    target = {"path": path, "port": port, **({"host": host} if host else {})}
    return {"httpGet": target, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": 3}


def digest(content: Mapping[str, Any]) -> str:
    """The same for equal content, whatever the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def stamped(body: Json) -> Json:
    """``body`` with the digest of its spec: a field that a newer version no longer sets is noticed, too."""
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
    """A DaemonSet whose pods are replaced a tenth at a time."""
    metadata = {"name": name, "namespace": namespace, "labels": dict(labels)}
    return stamped(
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
