"""Where things are in the API."""

from urllib.parse import quote

from gpushare_core.api.names import API_VERSION, NODE_PLURAL, POLICY_PLURAL

NODES = "/api/v1/nodes"
PODS = "/api/v1/pods"
"""Of all namespaces."""
POLICIES = f"/apis/{API_VERSION}/{POLICY_PLURAL}"
SHARE_NODES = f"/apis/{API_VERSION}/{NODE_PLURAL}"


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods"


def pod_path(namespace: str, name: str) -> str:
    return f"{pods(namespace)}/{quote(name, safe='')}"


def daemon_sets(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets"


def jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"


def leases(namespace: str) -> str:
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


def lease_path(namespace: str, name: str) -> str:
    return f"{leases(namespace)}/{name}"


def storage_capacities(namespace: str) -> str:
    return f"/apis/storage.k8s.io/v1/namespaces/{namespace}/csistoragecapacities"
