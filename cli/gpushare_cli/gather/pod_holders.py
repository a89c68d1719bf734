"""What is read of pods that hold units: their annotations, when they were made, and ResourceQuotas."""

import asyncio
from collections.abc import Collection, Mapping, Sequence

from msgspec import Raw

from gpushare_cli.decide.ledger import booking_of
from gpushare_cli.decide.objects.known_pod import KnownPod
from gpushare_cli.decide.objects.resource_quota import ResourceQuotaObject
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import ALL_PODS, PARALLEL_READS, PodScope, bound_to, read_list
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import QUOTAS, pods
from gpushare_core.kube.request import METADATA_LIST, ApiRequest
from gpushare_core.kube.response import ListResponse
from gpushare_core.scheduling.objects.holder import PodUpdate

MAX_KNOWN_PODS = 3_000
"""Pods of which it is read when they were made: more take longer than anybody wants to wait."""
"""Of all namespaces."""


async def read_booked(
    client: KubeClient, nodes: Collection[str], scope: PodScope = ALL_PODS
) -> list[PodUpdate]:
    """Returns what the pods of ``nodes`` that have not ended have by their annotations. Node by node: the API
    server finds the pods of a node without looking at all others.

    Raises:
        CannotLookError: pods cannot be listed.
    """
    slots = asyncio.Semaphore(PARALLEL_READS)

    async def booked_on(node: str) -> list[PodUpdate]:
        async with slots:
            return await read_bookings(client, bound_to(node), scope)

    found = await asyncio.gather(*map(booked_on, nodes))
    return [update for booked in found for update in booked]


async def read_bookings(
    client: KubeClient, field_selector: str, scope: PodScope = ALL_PODS
) -> list[PodUpdate]:
    """Returns what the bound pods that ``field_selector`` chooses have by their annotations.

    Raises:
        CannotLookError: pods cannot be listed.
    """
    booked = await _bookings(client, field_selector, scope, metadata_only=True)
    if any(update.legacy for update in booked):  # how much these have, and where, only whole pods say
        booked = await _bookings(client, field_selector, scope, metadata_only=False)
    return booked


async def _bookings(
    client: KubeClient, field_selector: str, scope: PodScope, *, metadata_only: bool
) -> list[PodUpdate]:
    found, _ = await scope.listed(
        client, shape=Raw, field_selector=field_selector, metadata_only=metadata_only
    )
    return [*map(booking_of, found)]


async def read_known_pods(client: KubeClient, scope: PodScope, unread: list[str]) -> Mapping[str, KnownPod]:
    """Returns pods by UID; none where there are too many or they may not be listed, which ``unread`` then
    says."""
    unknown = "Ages of pods that run, and which of them are terminating, are not known"
    try:
        page, refused = await scope.read(lambda path: client.read(_first(path), shape=ListResponse[KnownPod]))
    except (ApiError, UnreachableError) as error:
        unread.append(f"{unknown}: {error}.")
        return {}
    unread += scope.unknown(unknown, refused)
    if page.metadata.next_page:
        unread.append(f"{unknown}: there are more than {MAX_KNOWN_PODS:,} pods. Choose a namespace by -n.")
        return {}
    return {pod.metadata.uid: pod for pod in page.items or ()}


def _first(path: str) -> ApiRequest:
    return ApiRequest(path=path, params={"limit": str(MAX_KNOWN_PODS)}, accept=METADATA_LIST)


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
