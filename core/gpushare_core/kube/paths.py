"""Paths of collections and objects in the API."""

from urllib.parse import quote

from gpushare_core.api.names import API_VERSION, NODE_PLURAL, POLICY_PLURAL

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
"""Of all namespaces."""
DISRUPTION_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"
"""Of all namespaces."""
SERVER_VERSION = "/version"
ADMISSION = "/apis/admissionregistration.k8s.io"
"""A group without a version: it lists the versions that are served."""
POLICIES = f"/apis/{API_VERSION}/{POLICY_PLURAL}"
SHARE_NODES = f"/apis/{API_VERSION}/{NODE_PLURAL}"


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{_quoted(namespace)}/pods"


def pod_path(namespace: str, name: str) -> str:
    return f"{pods(namespace)}/{_quoted(name)}"


def daemon_sets(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{_quoted(namespace)}/daemonsets"


def deployments(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{_quoted(namespace)}/deployments"


def deployment_path(namespace: str, name: str) -> str:
    return f"{deployments(namespace)}/{_quoted(name)}"


def jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{_quoted(namespace)}/jobs"


def config_maps(namespace: str) -> str:
    return f"/api/v1/namespaces/{_quoted(namespace)}/configmaps"


def config_map_path(namespace: str, name: str) -> str:
    return f"{config_maps(namespace)}/{_quoted(name)}"


def events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{_quoted(namespace)}/events"


def leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{_quoted(namespace)}/leases"


def lease_path(namespace: str, name: str) -> str:
    return f"{leases(namespace)}/{_quoted(name)}"


def storage_capacities(namespace: str) -> str:
    return f"/apis/storage.k8s.io/v1/namespaces/{_quoted(namespace)}/csistoragecapacities"


def _quoted(name: str) -> str:
    return quote(name, safe="")
