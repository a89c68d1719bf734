"""Paths of collections and objects in the API."""

from collections.abc import Callable
from urllib.parse import quote

from gpushare_core.api.names import API_VERSION, GROUP, NODE_PLURAL, POLICY_PLURAL


def _collection(group: str, plural: str) -> Callable[[str], str]:
    """Returns the function from a namespace to the path of its collection."""
    return lambda namespace: f"{group}/namespaces/{_quoted(namespace)}/{plural}"


def _object(collection: Callable[[str], str]) -> Callable[[str, str], str]:
    """Returns the function from namespace and name to the path of an object in ``collection``."""
    return lambda namespace, name: f"{collection(namespace)}/{_quoted(name)}"


def _quoted(name: str) -> str:
    return quote(name, safe="")


NODES = "/api/v1/nodes"
# Of all namespaces:
PODS = "/api/v1/pods"
DEPLOYMENTS = "/apis/apps/v1/deployments"
DAEMON_SETS = "/apis/apps/v1/daemonsets"
LEASES = "/apis/coordination.k8s.io/v1/leases"
QUOTAS = "/api/v1/resourcequotas"
DISRUPTION_BUDGETS = "/apis/policy/v1/poddisruptionbudgets"

SERVER_VERSION = "/version"
SUBJECT_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
"""What somebody else may do; ``ACCESS_REVIEWS`` say it of the client itself."""
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
OWN_GROUP = f"/apis/{GROUP}"
"""Answers as ``ADMISSION`` does, where the CRDs are installed."""
ADMISSION = "/apis/admissionregistration.k8s.io"
"""A group without a version: it lists the versions that are served."""
POLICIES = f"/apis/{API_VERSION}/{POLICY_PLURAL}"
SHARE_NODES = f"/apis/{API_VERSION}/{NODE_PLURAL}"

pods = _collection("/api/v1", "pods")
pod_path = _object(pods)
quotas = _collection("/api/v1", "resourcequotas")
claims = _collection("/api/v1", "persistentvolumeclaims")
daemon_sets = _collection("/apis/apps/v1", "daemonsets")
deployments = _collection("/apis/apps/v1", "deployments")
deployment_path = _object(deployments)
jobs = _collection("/apis/batch/v1", "jobs")
config_maps = _collection("/api/v1", "configmaps")
config_map_path = _object(config_maps)
events = _collection("/apis/events.k8s.io/v1", "events")
leases = _collection("/apis/coordination.k8s.io/v1", "leases")
lease_path = _object(leases)
storage_capacities = _collection("/apis/storage.k8s.io/v1", "csistoragecapacities")


def namespace_path(name: str) -> str:
    return f"/api/v1/namespaces/{_quoted(name)}"


def kubelet_path(node: str, page: str) -> str:
    """Returns the path of what the kubelet itself serves, through the API server."""
    return f"{NODES}/{_quoted(node)}/proxy/{page}"
