"""What is read of pods that hold units: their annotations, when they were made, and ResourceQuotas."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from msgspec import Raw

from gpushare_cli.decide.objects.known_pod import KnownPod
from gpushare_cli.decide.objects.resource_quota import ResourceQuotaObject
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import MAX_NODES_WITH_PODS, PARALLEL_READS, bound_to, read_list
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import PODS, QUOTAS, pods
from gpushare_core.kube.request import METADATA_LIST, ApiRequest
from gpushare_core.kube.response import ListResponse
from gpushare_core.scheduling.objects.holder import PodUpdate, read_pod

MAX_KNOWN_PODS = 3_000
"""Pods of which it is read when they were made: more take longer than anybody wants to wait."""
"""Of all namespaces."""


async def read_booked(client: KubeClient, nodes: Collection[str]) -> Sequence[PodUpdate]:
    """Returns what the pods of ``nodes`` that have not ended have by their annotations. Of more nodes than
    ``MAX_NODES_WITH_PODS`` nothing is read: a pod that runs is in its GPUShareNode a moment later.

    Raises:
        CannotLookError: pods cannot be listed.
    """
    if len(nodes) > MAX_NODES_WITH_PODS:
        return ()
    slots = asyncio.Semaphore(PARALLEL_READS)

    async def pods_of(node: str) -> Sequence[Raw]:
        async with slots:
            return await read_list(client, PODS, shape=Raw, field_selector=bound_to(node), metadata_only=True)

    found = await asyncio.gather(*map(pods_of, nodes))
    return [read_pod(raw) for pods in found for raw in pods]


async def read_known_pods(client: KubeClient, namespace: str, unread: list[str]) -> Mapping[str, KnownPod]:
    """Returns pods by UID; none where there are too many or they may not be listed, which ``unread`` then
    says. ``namespace``: empty for all."""
    request = ApiRequest(
        path=pods(namespace) if namespace else PODS,
        params={"limit": str(MAX_KNOWN_PODS)},
        accept=METADATA_LIST,
    )
    unknown = "Ages of pods that run, and which of them are terminating, are not known"
    try:
        page = await client.read(request, shape=ListResponse[KnownPod])
    except (ApiError, UnreachableError) as error:
        unread.append(f"{unknown}: {error}.")
        return {}
    if page.metadata.next_page:
        unread.append(f"{unknown}: there are more than {MAX_KNOWN_PODS:,} pods. Choose a namespace by -n.")
        return {}
    return {pod.metadata.uid: pod for pod in page.items or ()}


async def read_quotas(
    client: KubeClient, namespace: str, unread: list[str]
) -> Sequence[ResourceQuotaObject] | None:
    """Returns None where they cannot be read, which ``unread`` then says."""
    path = pods(namespace).removesuffix("/pods") + "/resourcequotas" if namespace else QUOTAS
    try:
        return await read_list(client, path, shape=ResourceQuotaObject)
    except CannotLookError as error:
        unread.append(f"ResourceQuotas are not known: {error}.")
        return None
