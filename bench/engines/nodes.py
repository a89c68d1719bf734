"""Nodes that a row adds, with pods on cards of its choice, and the reports that their plugins would write."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from bench.cluster.cluster_objects import (
    NAMESPACE,
    RUNNING,
    Layout,
    PlacedPod,
    allocation_of,
    node,
    node_name,
    share_node,
    share_node_status,
)
from bench.cluster.waiting_pods import remove_pod
from bench.fill_cluster import create_node

from gpushare_core.kube import paths
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError
from gpushare_core.text.json_object import Json

NOBODY = "bench-nobody"
"""The ``schedulerName`` of pods that the row itself binds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cards(Layout):
    """Of one node: these pods are on its cards, and no others."""

    nodes: int = 1
    placed: tuple[PlacedPod, ...] = ()

    def pods(self, node: int) -> list[PlacedPod]:
        return [pod for pod in self.placed if pod.node == node]


@dataclass(slots=True, kw_only=True)
class AddedNode:
    """Node ``index``, where the row does what its plugin would do."""

    client: KubeClient
    index: int
    cards: Cards
    uids: Mapping[str, str] = field(default_factory=dict)
    """Of the pods on its cards, by name."""

    @property
    def name(self) -> str:
        return node_name(self.index)

    async def report(self, uids: Mapping[str, str]) -> None:
        """Writes to whom its kubelet has given units. Before the first report it takes no shared pods."""
        self.uids = uids
        status = share_node_status(self.index, self.cards, self.uids)
        await self.client.merge(f"{paths.SHARE_NODES}/{self.name}/status", status)

    async def release(self, names: Collection[str]) -> None:
        """Reports that its kubelet has back what these pods had."""
        left = tuple(pod for pod in self.cards.placed if pod.name not in names)
        self.cards = replace(self.cards, placed=left)
        await self.report(self.uids)


@asynccontextmanager
async def added(client: KubeClient, index: int, cards: Cards) -> AsyncIterator[AddedNode]:
    """The node is there while entered."""
    found = AddedNode(client=client, index=index, cards=cards)
    try:
        await create_node(client, node(index, cards))
        await client.create(paths.SHARE_NODES, share_node(index))
        yield found
    finally:
        for collection in (paths.NODES, paths.SHARE_NODES):
            await _remove(client, f"{collection}/{found.name}")


async def _remove(client: KubeClient, path: str) -> None:
    try:
        await client.delete(path)
    except ApiError as error:
        if not error.is_not_found:
            raise


@asynccontextmanager
async def bound(
    client: KubeClient, scheduler: KubeClient, bodies: Mapping[PlacedPod, Json]
) -> AsyncIterator[dict[str, str]]:
    """The pods run on their cards while entered. Yields name -> UID.

    ``scheduler`` has the rights of our kube-scheduler: nobody else may say which card a pod has.
    """
    uids: dict[str, str] = {}
    try:
        for place, body in bodies.items():
            created = await client.create(paths.pods(NAMESPACE), body)
            uids[place.name] = uid = str(created["metadata"]["uid"])
            path = paths.pod_path(NAMESPACE, place.name)
            await scheduler.create(f"{path}/binding", binding(place, uid))
            await client.merge(f"{path}/status", {"status": RUNNING})
        yield uids
    finally:
        for place in bodies:
            await remove_pod(client, place.name)


def binding(place: PlacedPod, uid: str) -> Json:
    """Returns the Binding of its pod, with its card where it has units."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node_name(place.node)}
    metadata: Json = {"name": place.name, "namespace": NAMESPACE, "uid": uid}
    if place.units:
        metadata["annotations"] = allocation_of(place, uid)
    return {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
