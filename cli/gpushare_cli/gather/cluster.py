"""The objects of the API server that an audit compares, and those in which residue can be."""

from gpushare_cli.errors import CannotLookError, not_reached
from gpushare_core.api.names import NODE_KIND, POLICY_KIND
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import DAEMON_SETS, DEPLOYMENTS, LEASES, NODES, PODS, POLICIES, SHARE_NODES
from gpushare_core.text.json_object import Json

COLLECTIONS = {
    "Node": NODES,
    "Pod": PODS,
    "DaemonSet": DAEMON_SETS,
    "Deployment": DEPLOYMENTS,
    "Job": "/apis/batch/v1/jobs",
    "ConfigMap": "/api/v1/configmaps",
    "Lease": LEASES,
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    POLICY_KIND: POLICIES,
    NODE_KIND: SHARE_NODES,
}
"""Kind -> path. Secrets are not among them: gpushare makes none, and an auditor need not read them."""
OWN_KINDS = frozenset({POLICY_KIND, NODE_KIND})
"""They cannot be listed once their CustomResourceDefinitions are deleted."""
PAGE = 500
INSTALLED = (
    "see that your kubeconfig is right, that gpushare is installed, and that you may list it"
    " (ClusterRole gpushare-auditor)"
)
ALLOWED = "see that you may (ClusterRole gpushare-auditor)"


async def read_share_nodes(client: KubeClient, node: str = "") -> list[Json]:
    """Returns all GPUShareNodes, or that of ``node``."""
    return await _listed(client, SHARE_NODES, INSTALLED, f"metadata.name={node}" if node else "")


async def read_pods(client: KubeClient, node: str = "") -> list[Json]:
    """Returns the pods that are bound, of all nodes or to ``node``."""
    return await _listed(client, PODS, INSTALLED, f"spec.nodeName={node}" if node else "spec.nodeName!=")


async def read_traces(client: KubeClient) -> list[Json]:
    """Returns every object of ``COLLECTIONS``, with its kind."""
    return [
        {**item, "kind": kind}
        for kind, path in COLLECTIONS.items()
        for item in await _listed(client, path, ALLOWED, may_be_missing=kind in OWN_KINDS)
    ]


async def _listed(
    client: KubeClient, path: str, advice: str, field_selector: str = "", *, may_be_missing: bool = False
) -> list[Json]:
    try:
        pages = client.pages(path, limit=PAGE, field_selector=field_selector)
        return [item async for page in pages for item in page.items]
    except (ApiError, UnreachableError) as error:
        if may_be_missing and isinstance(error, ApiError) and error.is_not_found:
            return []
        is_answer = isinstance(error, ApiError)
        refused = f"the API server does not list {path}: {error}; {advice}"
        raise CannotLookError(refused if is_answer else not_reached(error)) from error
