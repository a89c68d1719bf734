"""The objects of the API server that an audit compares, and those in which residue can be."""

from gpushare_cli.gather.errors import CannotLookError
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import PODS, SHARE_NODES
from gpushare_core.text.json_object import Json

PAGE = 500


async def read_share_nodes(client: KubeClient, node: str = "") -> list[Json]:
    """Returns all GPUShareNodes, or that of ``node``.

    Raises:
        CannotLookError: they cannot be read.
    """
    return await listed(client, SHARE_NODES, field_selector=f"metadata.name={node}" if node else "")


async def read_pods(client: KubeClient, node: str = "") -> list[Json]:
    """Returns the pods that are bound, of all nodes or to ``node``.

    Raises:
        CannotLookError: they cannot be read.
    """
    return await listed(client, PODS, field_selector=f"spec.nodeName={node}" if node else "spec.nodeName!=")


async def listed(client: KubeClient, path: str, *, field_selector: str = "") -> list[Json]:
    """Returns a whole collection.

    Raises:
        CannotLookError: it cannot be read.
    """
    try:
        pages = client.pages(path, limit=PAGE, field_selector=field_selector)
        return [item async for page in pages for item in page.items]
    except (ApiError, UnreachableError) as error:
        raise CannotLookError(
            f"the API server does not list {path}: {error}; see that your kubeconfig is right, that gpushare"
            " is installed, and that you may list it (ClusterRole gpushare-auditor)"
        ) from error
