"""Lists of the API server, decoded as far as a command needs them."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from gpushare_cli.errors import CannotLookError, not_reached
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import PODS, pods
from gpushare_core.kube.request import JSON, METADATA_LIST, ApiRequest
from gpushare_core.kube.response import ListResponse
from gpushare_core.process.malloc import give_back

T = TypeVar("T")

PENDING = "status.phase=Pending"
"""Field selector of pods that wait, and of those that are bound and do not run yet."""
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


class InScope(NamedTuple, Generic[T]):
    """What was read, and why it is of ``PodScope.own`` alone; None: it is all that was asked for."""

    found: T
    refused: ApiError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodScope:
    """Whose pods are read: those of ``namespace``, empty for all. Who may not list all, such as a member of a
    team, reads those of ``own``, if there is one."""

    namespace: str = ""
    own: str = ""

    async def read(self, read: Callable[[str], Awaitable[T]]) -> InScope[T]:
        """Calls ``read`` with the path of the pods. Raises what it raises of the first path."""
        try:
            return InScope(await read(pods(self.namespace) if self.namespace else PODS))
        except (ApiError, CannotLookError) as error:
            refused = error if isinstance(error, ApiError) else error.__cause__
            if self.own and not self.namespace and isinstance(refused, ApiError) and refused.is_forbidden:
                with suppress(ApiError, CannotLookError, UnreachableError):
                    return InScope(await read(pods(self.own)), refused)
            raise

    async def listed(
        self, client: KubeClient, *, shape: type[T], field_selector: str = "", metadata_only: bool = False
    ) -> InScope[list[T]]:
        """Raises as ``read_list``."""
        return await self.read(
            lambda path: read_list(
                client, path, shape=shape, field_selector=field_selector, metadata_only=metadata_only
            )
        )

    def narrowed(self, refused: ApiError | None) -> "PodScope":
        """Returns what to read after an answer with ``refused``."""
        return PodScope(namespace=self.own) if refused else self

    def unknown(self, what: str, refused: ApiError | None) -> list[str]:
        """Returns a sentence: ``what`` is not known, but of ``own``; none where nothing was refused."""
        return [f"{what}, but for those of namespace {self.own}: {refused}."] if refused else []


ALL_PODS = PodScope()


def not_listed(path: str, error: ApiError | UnreachableError, advice: str) -> CannotLookError:
    """Returns what to raise where ``error`` came instead of the list at ``path``."""
    if isinstance(error, UnreachableError):
        return CannotLookError(not_reached(error))
    return CannotLookError(f"the API server does not list {path}: {error}; {advice}")
