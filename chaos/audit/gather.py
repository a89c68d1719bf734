"""Every book of the local cluster, read from where it is kept: the kubelets' own last."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import grpc
import grpc.aio

from chaos.audit.extender_book import read_extenders
from chaos.audit.kubelet_books import read_checkpoint, read_resources
from chaos.audit.scheduler_book import read_schedulers
from chaos.plan.known import CONTROL_PLANES, WORKERS
from chaos.world import World
from gpushare_core.api.enums import Engine
from gpushare_core.audit.difference import DifferenceKind
from gpushare_core.audit.readers import named_pods, read_environment, read_pod, read_share_node
from gpushare_core.audit.records import (
    ClusterRecords,
    ContainerKey,
    LedgerRecord,
    ListedContainer,
    NodeRecords,
    PodKey,
    PodRecord,
    SeenCards,
    StoredContainer,
)
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import PODS, SHARE_NODES
from gpushare_core.text.json_object import Json
from gpushare_localcluster.containers import read_records
from gpushare_plugin.kubelet.pod_resources import LIST
from gpushare_plugin.kubelet.proto import podresources_pb2 as api

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
CHECKPOINT = "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"
TIMEOUT = 5.0


class UnreadableBooksError(Exception):
    """A book that everything else is compared with cannot be read now."""

    kind = DifferenceKind.UNREADABLE


@dataclass(frozen=True, slots=True)
class Reading:
    """All books, read once."""

    books: Mapping[str, ClusterRecords]
    """Whose ledger the books contain, a control plane with its extender or a pod of kube-scheduler -> the
    books; "" where nobody tells a ledger."""
    unread: Mapping[str, str] = field(default_factory=dict)
    """Book that has to exist in quiet -> why it could not be read."""


class Gatherer:
    """Use as an asynchronous context manager."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._named: dict[str, PodKey] = {}
        """UID -> pod that some GPUShareNode has named."""

    async def __aenter__(self) -> "Gatherer":
        self._channels = {node: _channel(self._world.node_file(node, SOCKET)) for node in WORKERS}
        return self

    async def __aexit__(self, *_: object) -> None:
        for channel in self._channels.values():
            await channel.close()

    async def read(self) -> Reading:
        """Raises ``UnreadableBooksError`` where the API server does not respond. Other books may be missing:
        those of a node that is off, or of a stopped kubelet."""
        try:
            pods, share_nodes = await asyncio.gather(
                self._world.client.get(PODS), self._world.client.get(SHARE_NODES)
            )
            self._named |= {pod.uid: pod for item in share_nodes["items"] for pod in named_pods(item)}
            ledgers = await self._ledgers()
        except (ApiError, UnreachableError) as error:
            raise UnreadableBooksError(f"the API server does not answer: {error}") from error
        read = {keeper: ledger for keeper, ledger in ledgers.items() if ledger is not None}
        bound = _by_node(pods["items"])
        statuses = {item["metadata"]["name"]: item for item in share_nodes["items"]}
        nodes = [await self._node(node, bound[node], statuses.get(node)) for node in WORKERS]
        missing = [keeper for keeper, ledger in ledgers.items() if ledger is None]
        return Reading(by_keeper(nodes, read), dict(unread(nodes, missing)))

    async def _ledgers(self) -> dict[str, Mapping[str, LedgerRecord] | None]:
        """Returns who keeps one -> the ledger, by node; None where it cannot be read now."""
        if self._world.engine is Engine.PLUGIN:
            return await read_schedulers(self._world, self._named)
        found = await asyncio.to_thread(read_extenders, self._world.cluster)
        return {control_plane: found.get(control_plane) for control_plane in CONTROL_PLANES}

    async def _node(self, node: str, pods: Mapping[str, PodRecord], status: Json | None) -> NodeRecords:
        """The kubelet's own books last, as the auditor asks for."""
        environments = self._environments(node)
        resources = await self._resources(node)
        checkpoint = read_checkpoint(self._world.node_file(node, CHECKPOINT))
        return NodeRecords(
            node=node,
            share_node=read_share_node(status) if status else None,
            pods=pods,
            environments=without_abandoned(environments, pods.values(), checkpoint),
            resources=resources,
            checkpoint=checkpoint,
        )

    def _environments(self, node: str) -> dict[ContainerKey, SeenCards | None]:
        folder = self._world.cluster.directory / "nodes" / node / "containers"
        return {
            ContainerKey(
                PodKey(record.namespace, record.pod, record.pod_uid), record.container
            ): read_environment(record.env)
            for record in read_records(node, folder)
            if record.state == "running"
        }

    async def _resources(self, node: str) -> list[ListedContainer] | None:
        call = self._channels[node].unary_unary(
            LIST,
            request_serializer=api.ListPodResourcesRequest.SerializeToString,
            response_deserializer=api.ListPodResourcesResponse.FromString,
        )
        try:
            return read_resources(await call(api.ListPodResourcesRequest(), timeout=TIMEOUT))
        except grpc.aio.AioRpcError:
            return None


def by_keeper(
    nodes: Iterable[NodeRecords], ledgers: Mapping[str, Mapping[str, LedgerRecord]]
) -> dict[str, ClusterRecords]:
    """Returns who keeps a ledger -> the books of ``nodes`` with that ledger."""
    if not ledgers:
        return {"": ClusterRecords({node.node: node for node in nodes})}
    every = list(nodes)
    return {
        asked: ClusterRecords(
            {record.node: replace(record, ledger=ledger.get(record.node, LedgerRecord())) for record in every}
        )
        for asked, ledger in ledgers.items()
    }


def unread(nodes: Iterable[NodeRecords], missing: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yields book that is missing -> why: a book that is not read is not compared, which nobody would
    notice. ``missing``: who keeps a ledger that could not be read."""
    for node in nodes:
        if node.share_node is not None and node.share_node.cards:
            if node.resources is None:
                yield f"PodResources of {node.node}", "its kubelet does not answer"
            if node.checkpoint is None:
                yield f"checkpoint of {node.node}", "it is not there, or no JSON"
    for keeper in missing:
        yield f"ledger of {keeper}", "nobody answers there, or the keys are not there"


def without_abandoned(
    environments: Mapping[ContainerKey, SeenCards | None],
    pods: Iterable[PodRecord],
    checkpoint: Mapping[ContainerKey, StoredContainer] | None,
) -> dict[ContainerKey, SeenCards | None]:
    """Returns the environments, without those of pods that API server and kubelet have both given up.

    The kubelet (1.36) gives the units of a pod that was deleted by force to the next pod at once, and ends
    its containers a moment later: until then no book has them.
    """
    known = {pod.kubelet_uid for pod in pods} | {key.pod.uid for key in checkpoint or ()}
    return {key: seen for key, seen in environments.items() if key.pod.uid in known}


def _channel(socket: Path) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"unix:{socket}", options=(("grpc.max_reconnect_backoff_ms", 500),))


def _by_node(pods: Iterable[Json]) -> dict[str, dict[str, PodRecord]]:
    found: dict[str, dict[str, PodRecord]] = defaultdict(dict)
    for pod in map(read_pod, pods):
        found[pod.node][pod.key.uid] = pod
    return found
