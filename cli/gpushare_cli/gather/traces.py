"""The objects of the API server in which something of ours can be left."""

from gpushare_cli.gather.errors import CannotLookError
from gpushare_core.api.names import NODE_KIND, POLICY_KIND
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import NODES, PODS, POLICIES, SHARE_NODES
from gpushare_core.text.json_object import Json

COLLECTIONS = {
    "Node": NODES,
    "Pod": PODS,
    "DaemonSet": "/apis/apps/v1/daemonsets",
    "Deployment": "/apis/apps/v1/deployments",
    "Job": "/apis/batch/v1/jobs",
    "ConfigMap": "/api/v1/configmaps",
    "Lease": "/apis/coordination.k8s.io/v1/leases",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/rolebindings",
    POLICY_KIND: POLICIES,
    NODE_KIND: SHARE_NODES,
}
"""Kind -> path. Secrets are not among them: nothing of ours makes one, and who audits need not read them."""
OWN_KINDS = frozenset({POLICY_KIND, NODE_KIND})
"""Once the CustomResourceDefinitions are gone, too, there are none."""
PAGE = 500


async def read_traces(client: KubeClient) -> list[Json]:
    """Returns every object of ``COLLECTIONS``, with its kind.

    Raises:
        CannotLookError: one of the collections cannot be listed.
    """
    return [item for kind, path in COLLECTIONS.items() for item in await _collection(client, kind, path)]


async def _collection(client: KubeClient, kind: str, path: str) -> list[Json]:
    try:
        return [
            {**item, "kind": kind} async for page in client.pages(path, limit=PAGE) for item in page.items
        ]
    except (ApiError, UnreachableError) as error:
        if kind in OWN_KINDS and isinstance(error, ApiError) and error.is_not_found:
            return []
        raise CannotLookError(
            f"the API server does not list {path}: {error}; see that you may (ClusterRole gpushare-auditor)"
        ) from error
