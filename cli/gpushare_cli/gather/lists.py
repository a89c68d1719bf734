"""Lists of the API server, decoded as far as a command needs them."""

from typing import TypeVar

from gpushare_cli.errors import CannotLookError, not_reached
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.request import JSON, METADATA_LIST, ApiRequest
from gpushare_core.kube.response import ListResponse
from gpushare_core.process.malloc import give_back

T = TypeVar("T")

NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
"""Field selector of pods. Terminating ones have not: their containers may still run."""
MAX_NODES_WITH_PODS = 50
"""Of more nodes pods are not read by commands that people look at often."""
PARALLEL_READS = 8
CACHED = {"resourceVersion": "0"}
"""From the API server's cache, in one piece: a list of thousands is not read page by page from its store."""


def bound_to(node: str) -> str:
    """Returns the field selector of the pods of ``node`` that have not ended."""
    return f"spec.nodeName={node},{NOT_ENDED}"


async def read_list(
    client: KubeClient,
    path: str,
    *,
    shape: type[T],
    field_selector: str = "",
    label_selector: str = "",
    metadata_only: bool = False,
    advice: str = "see that you may list it",
) -> list[T]:
    """Returns the objects at ``path``, each as ``shape``.

    Raises:
        CannotLookError: the list cannot be read; the text ends with ``advice``.
    """
    selectors = {"fieldSelector": field_selector, "labelSelector": label_selector}
    params = {**CACHED, **{name: value for name, value in selectors.items() if value}}
    try:
        accept = METADATA_LIST if metadata_only else JSON
        request = ApiRequest(path=path, params=params, accept=accept)
        response = await client.read(request, shape=ListResponse[shape])  # type: ignore[valid-type]
    except (ApiError, UnreachableError) as error:
        raise not_listed(path, error, advice) from error
    give_back()  # the parts in which it came: of 5,000 GPUShareNodes 27 MB
    return response.items or []


def not_listed(path: str, error: ApiError | UnreachableError, advice: str) -> CannotLookError:
    """Returns what to raise where ``error`` came instead of the list at ``path``."""
    if isinstance(error, UnreachableError):
        return CannotLookError(not_reached(error))
    return CannotLookError(f"the API server does not list {path}: {error}; {advice}")
