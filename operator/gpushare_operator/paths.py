"""Where things are in the API."""

from gpushare_core.api.names import GROUP, NODE_PLURAL, POLICY_PLURAL, VERSION

_CUSTOM = f"/apis/{GROUP}/{VERSION}"

NODES = "/api/v1/nodes"
POLICIES = f"{_CUSTOM}/{POLICY_PLURAL}"
SHARE_NODES = f"{_CUSTOM}/{NODE_PLURAL}"


def daemon_sets(namespace: str) -> str:
    return f"/apis/apps/v1/namespaces/{namespace}/daemonsets"


def jobs(namespace: str) -> str:
    return f"/apis/batch/v1/namespaces/{namespace}/jobs"


def pods(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods"


def events(namespace: str) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
