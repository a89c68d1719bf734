"""Reads what a simulation begins with: GPUShareNodes, and of pods only those that are needed."""

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.objects.pod_status import status_of
from gpushare_cli.decide.scheduling.written_pod import WrittenPod
from gpushare_cli.decide.simulation.node_room import Amounts, used_by
from gpushare_cli.decide.simulation.redivision import readable_share_node
from gpushare_cli.decide.simulation.simulated_pod import readable_pods
from gpushare_cli.decide.simulation.simulation import SimulatedCluster
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import CACHED, read_list
from gpushare_core.api.share_node import LenientMeta
from gpushare_core.dialects.table import ASKED_RESOURCES
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import NODES, PODS, SHARE_NODES
from gpushare_core.kube.request import METADATA_LIST, ApiRequest
from gpushare_core.kube.response import ListResponse
from gpushare_core.scheduling.objects.holder import PodUpdate, read_pod
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.text.json_object import Json

T = TypeVar("T")

MAX_NODES_WITH_PODS = 50
"""With more nodes that share cards, their pods are not read: CPU and memory are compared with empty nodes."""
PARALLEL_READS = 8
BOUND = "spec.nodeName!=,status.phase=Pending"
"""Bound pods that have not started."""
WAITING = "spec.nodeName=,status.phase=Pending"
NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
INSTALLED = "see that gpushare is installed, and that you may list gpusharenodes"


@dataclass(slots=True)
class StateReader:
    """Reads lists; what may be missing is noted in ``remarks``."""

    client: KubeClient
    remarks: list[str] = field(default_factory=list)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARALLEL_READS))

    async def share_nodes(self) -> list[msgspec.Raw]:
        return await read_list(self.client, SHARE_NODES, shape=msgspec.Raw, advice=INSTALLED)

    async def optional(self, reading: Awaitable[T], *, without: str, otherwise: T) -> T:
        """Returns ``otherwise`` where it cannot be read; ``without``: what that means, for people."""
        try:
            return await reading
        except CannotLookError as error:
            self.remarks.append(f"{without}: {error}")
            return otherwise

    async def nodes(self) -> Mapping[str, KubeNode] | None:
        listed = await self.optional(
            read_list(self.client, NODES, shape=KubeNode),
            without="Labels, taints, CPU and memory of nodes are not considered",
            otherwise=None,
        )
        return None if listed is None else {node.name: node for node in listed}

    async def booked(self) -> list[PodUpdate]:
        return await self.optional(
            self._metadata(BOUND),
            without="Pods that were bound a moment ago may be missing",
            otherwise=[],
        )

    async def waiting(self) -> list[Json]:
        """Returns the waiting pods that ask for a share of cards, whole."""
        found = await self.optional(
            read_list(self.client, PODS, shape=msgspec.Raw, field_selector=WAITING),
            without="Pods that wait are not considered",
            otherwise=[],
        )
        return readable_pods(msgspec.json.decode(raw) for raw in found if _asks(raw))

    async def used(self, nodes: Collection[str]) -> Mapping[str, Amounts]:
        """Returns what the pods of each node request, or nothing where there are too many nodes."""
        if len(nodes) > MAX_NODES_WITH_PODS:
            self.remarks.append(
                f"CPU and memory are compared with empty nodes: pods of {len(nodes):,} nodes are not read."
            )
            return {}
        read = await asyncio.gather(*(self._used(node) for node in nodes))
        if any(amounts is None for amounts in read):
            self.remarks.append("CPU and memory are compared with empty nodes: pods cannot be read.")
        return {node: amounts for node, amounts in zip(nodes, read, strict=True) if amounts is not None}

    async def _used(self, node: str) -> Amounts | None:
        selector = f"spec.nodeName={node},{NOT_ENDED}"
        async with self._slots:
            try:
                found = await read_list(self.client, PODS, shape=WrittenPod, field_selector=selector)
            except CannotLookError:
                return None
        return used_by(pod.spec for pod in found)

    async def _metadata(self, field_selector: str) -> list[PodUpdate]:
        request = ApiRequest(
            path=PODS, params={**CACHED, "fieldSelector": field_selector}, accept=METADATA_LIST
        )
        try:
            listed = await self.client.read(request, shape=ListResponse[msgspec.Raw])
        except (ApiError, UnreachableError) as error:
            raise CannotLookError(f"the API server does not list {PODS}: {error}") from error
        return [read_pod(raw) for raw in listed.items or ()]


def _asks(raw: msgspec.Raw) -> bool:
    try:
        return msgspec.json.decode(raw, type=KubePod).asks_for_any(ASKED_RESOURCES)
    except msgspec.ValidationError:
        return False


async def pods_on(client: KubeClient, node: str) -> list[Json]:
    """Returns the pods of ``node``, whole, and those that have ended as well. Raises ``CannotLookError``."""
    selector = f"spec.nodeName={node}"
    return readable_pods(await read_list(client, PODS, shape=dict, field_selector=selector))


async def read_cluster(
    client: KubeClient, share_nodes: Sequence[msgspec.Raw | bytes], *, without: Sequence[str]
) -> SimulatedCluster:
    """Raises ``CannotLookError`` where a node of ``without`` shares no cards, or its pods cannot be read."""
    reader = StateReader(client)
    names = [msgspec.json.decode(raw, type=_WithName).metadata.name for raw in share_nodes]
    if unknown := [node for node in without if node not in names]:
        raise CannotLookError(
            f"node {unknown[0]} shares no cards; see kubectl get gpusharenodes for those that do"
        )
    nodes, booked, waiting, used = await asyncio.gather(
        reader.nodes(), reader.booked(), reader.waiting(), reader.used(names)
    )
    pods = {
        node: await _moving(client, share_nodes[names.index(node)], node=node, booked=booked)
        for node in without
    }
    return SimulatedCluster(
        share_nodes=share_nodes,
        booked=booked,
        nodes=nodes,
        used=used,
        waiting=waiting,
        pods=pods,
        remarks=reader.remarks,
    )


async def _moving(
    client: KubeClient, raw: msgspec.Raw | bytes, *, node: str, booked: Sequence[PodUpdate]
) -> list[Json]:
    share_node = readable_share_node(raw)
    if share_node is None:
        raise CannotLookError(
            f"GPUShareNode {node} cannot be read, so nobody knows which pods have its cards"
        )
    cards = (share_node.get("status") or {}).get("cards") or ()
    uids = {pod["uid"] for card in cards for pod in card.get("pods") or ()}
    uids |= {update.uid for update in booked if update.holder and update.holder.node == node}
    pods = await pods_on(client, node)
    return [pod for pod in pods if pod["metadata"]["uid"] in uids and not status_of(pod).has_ended]


class _WithName(msgspec.Struct):
    """A GPUShareNode of any shape."""

    metadata: LenientMeta
