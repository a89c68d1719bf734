"""What all pods that the operator makes have in common."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from gpushare_core.text.json_object import Json
from gpushare_operator.cluster.labels import COMPARE_LABEL, HASH_ANNOTATION
from gpushare_operator.desired.names import Installation
from gpushare_operator.desired.programs import Program

NODE_CRITICAL = "system-node-critical"
"""Priority class: without these pods no pod that shares cards starts on the node or is placed there."""
EVERYWHERE = [{"operator": "Exists"}]
"""Tolerations: these pods belong to the node, whatever keeps other pods away."""
UNCHANGED_LABELS = {"sidecar.istio.io/inject": "false", "admission.datadoghq.com/enabled": "false"}
UNCHANGED_ANNOTATIONS = {"linkerd.io/inject": "disabled"}
"""On pods: other systems then add no containers or variables, which our admission policy would refuse."""
UNPRIVILEGED = 65532
"""User and group of programs that need no rights of their own."""


def confined(**extra: Any) -> Json:
    """Returns a container's security context with no rights beyond those of its user."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
        **extra,
    }


def unprivileged() -> Json:
    """Returns the security context of a pod whose programs need no rights of their own."""
    return {
        "runAsNonRoot": True,
        "runAsUser": UNPRIVILEGED,
        "runAsGroup": UNPRIVILEGED,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def pulled(installation: Installation, image: str = "") -> Json:
    """Returns the fields of a container for one of our images, and when that is pulled; ``image``: empty is
    that of all programs."""
    policy = {"imagePullPolicy": installation.pull_policy} if installation.pull_policy else {}
    return {"image": image or installation.image, **policy}


def pull_secrets(installation: Installation) -> Json:
    names = [{"name": name} for name in installation.pull_secrets]
    return {"imagePullSecrets": names} if names else {}


def resources_of(program: Program, usual: Json) -> Json:
    return program.resources.to_json() if program.resources else usual


def host_path(name: str, path: str, *, kind: str = "Directory") -> Json:
    """``kind``: what has to be there; empty: anything."""
    return {"name": name, "hostPath": {"path": path, "type": kind}}


def field_variable(name: str, path: str) -> Json:
    """Returns an environment variable with the field ``path`` of the pod."""
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def mount(name: str, path: str) -> Json:
    return {"name": name, "mountPath": path}


def on_nodes_with(*labels: str) -> Json:
    """Returns the affinity that keeps a pod to nodes with any of ``labels``, whatever their values."""
    terms = [{"matchExpressions": [{"key": label, "operator": "Exists"}]} for label in labels]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def probe(path: str, port: int, *, host: str = "", period: int = 10) -> Json:
    """Returns an HTTP probe that fails after three refusals; ``period`` is in seconds."""
    target = {"path": path, "port": port, **({"host": host} if host else {})}
    return {"httpGet": target, "periodSeconds": period, "timeoutSeconds": 5, "failureThreshold": 3}


def digest(content: Mapping[str, Any]) -> str:
    """Returns a digest that does not depend on the order of keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def with_digest(body: Json) -> Json:
    """Returns ``body`` with the digest of its spec, by which a field that is no longer set is drift, too."""
    annotations = {**body["metadata"].get("annotations", {}), HASH_ANNOTATION: digest(body["spec"])}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def daemon_set(
    name: str,
    *,
    namespace: str,
    labels: Mapping[str, str],
    selector: Mapping[str, str],
    pod: Json,
    annotations: Mapping[str, str] | None = None,
    owners: list[Json] | None = None,
    max_unavailable: str = "10%",
) -> Json:
    """Its pods have its labels and annotations; ``max_unavailable`` of them are replaced at a time."""
    common = {"labels": dict(labels), **({"annotations": dict(annotations)} if annotations else {})}
    metadata = {"name": name, "namespace": namespace, **common}
    return with_digest(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {**metadata, **({"ownerReferences": owners} if owners else {})},
            "spec": {
                "selector": {"matchLabels": dict(selector)},
                "updateStrategy": {
                    "type": "RollingUpdate",
                    "rollingUpdate": {"maxUnavailable": max_unavailable},
                },
                "template": {"metadata": of_pods(labels, annotations or {}), "spec": pod},
            },
        }
    )


def to_be_compared(body: Json) -> Json:
    """Returns ``body`` as it is written first, for an admission policy to compare it with the operator's
    Deployment."""
    metadata = body["metadata"]
    return {**body, "metadata": {**metadata, "labels": {**metadata["labels"], COMPARE_LABEL: ""}}}


def of_pods(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Json:
    return {
        "labels": {**labels, **UNCHANGED_LABELS},
        "annotations": {**annotations, **UNCHANGED_ANNOTATIONS},
    }
