"""Reads what a simulation begins with: GPUShareNodes, and of pods only those that are needed."""

import asyncio
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

import msgspec

from gpushare_cli.decide.ledger import (
    booking_of,
    bookings_of,
    card_uuids,
    is_held,
    node_ledger,
    shares_of,
)
from gpushare_cli.decide.objects.kube_node import KubeNode
from gpushare_cli.decide.objects.pod_status import status_of
from gpushare_cli.decide.scheduling.written_pod import WrittenPod
from gpushare_cli.decide.simulation.node_room import Amounts, used_by
from gpushare_cli.decide.simulation.redivision import readable_share_node
from gpushare_cli.decide.simulation.simulated_pod import readable_pods
from gpushare_cli.decide.simulation.simulation import SimulatedCluster
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import MAX_NODES_WITH_PODS, PARALLEL_READS, bound_to, read_list
from gpushare_cli.gather.pod_holders import read_booked, read_bookings
from gpushare_core.api.share_node import LenientMeta
from gpushare_core.dialects.table import ASKED_RESOURCES
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import NODES, PODS, SHARE_NODES
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.text.json_object import UNREADABLE_JSON, Json

T = TypeVar("T")

BOUND = "spec.nodeName!=,status.phase=Pending"
"""Bound pods that have not started."""
WAITING = "spec.nodeName=,status.phase=Pending"
MAY_BE_MISSING = "Pods that were bound a moment ago may be missing"
WITHOUT_PODS = (
    "CPU and memory are compared with empty nodes, and pods that began to run a moment ago may be missing"
)
INSTALLED = "see that gpushare is installed, and that you may list gpusharenodes"


class NodePods(NamedTuple):
    """Of the pods of a node that have not ended."""

    used: Amounts
    booked: Sequence[PodUpdate]
    """What they have by their annotations."""


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
            self.remarks.append(f"{without}: {error}.")
            return otherwise

    async def nodes(self) -> Mapping[str, KubeNode] | None:
        listed = await self.optional(
            read_list(self.client, NODES, shape=KubeNode),
            without="Labels, taints, CPU and memory of nodes are not considered",
            otherwise=None,
        )
        return None if listed is None else {node.name: node for node in listed}

    async def booked(self) -> list[PodUpdate]:
        return await self.optional(read_bookings(self.client, BOUND), without=MAY_BE_MISSING, otherwise=[])

    async def waiting(self) -> list[Json]:
        """Returns the waiting pods that ask for a share of cards, whole."""
        found = await self.optional(
            read_list(self.client, PODS, shape=msgspec.Raw, field_selector=WAITING),
            without="Pods that wait are not considered",
            otherwise=[],
        )
        return readable_pods(msgspec.json.decode(raw) for raw in found if _asks(raw))

    async def node_pods(self, nodes: Collection[str]) -> Mapping[str, NodePods]:
        """Returns nothing where there are too many nodes, and for a node whose pods cannot be read."""
        if len(nodes) > MAX_NODES_WITH_PODS:
            self.remarks.append(f"{WITHOUT_PODS}: pods of {len(nodes):,} nodes are not read.")
            return {}
        read = await asyncio.gather(*map(self._pods_of, nodes))
        if None in read:
            self.remarks.append(f"{WITHOUT_PODS}: pods cannot be read.")
        return {node: pods for node, pods in zip(nodes, read, strict=True) if pods is not None}

    async def _pods_of(self, node: str) -> NodePods | None:
        async with self._slots:
            try:
                found = await read_list(self.client, PODS, shape=msgspec.Raw, field_selector=bound_to(node))
                specs = [msgspec.json.decode(raw, type=WrittenPod).spec for raw in found]
                return NodePods(used_by(specs), [*map(booking_of, found)])
            except (CannotLookError, *UNREADABLE_JSON):
                return None


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
    nodes, starting, waiting = await asyncio.gather(reader.nodes(), reader.booked(), reader.waiting())
    of_nodes = await reader.node_pods(names)  # later: none is missed that begins to run in between
    pods = {node: await _moving(client, share_nodes[names.index(node)], node=node) for node in without}
    return SimulatedCluster(
        share_nodes=share_nodes,
        booked=[*starting, *(update for of_node in of_nodes.values() for update in of_node.booked)],
        nodes=nodes,
        used={node: of_node.used for node, of_node in of_nodes.items()},
        waiting=waiting,
        pods=pods,
        remarks=reader.remarks,
    )


async def with_unheld_nodes(client: KubeClient, cluster: SimulatedCluster) -> SimulatedCluster:
    """Returns ``cluster`` with what pods have of those nodes on which nobody has units by what was read:
    whether their cards are divided anew at once depends on it. Of few nodes it was read already."""
    if len(cluster.share_nodes) <= MAX_NODES_WITH_PODS:
        return cluster
    reader, ledger = StateReader(client), cluster.ledger()
    unheld = [name for name in ledger.node_names() if (node := ledger.node(name)) and not is_held(node)]
    booked = await reader.optional(read_booked(client, unheld), without=MAY_BE_MISSING, otherwise=[])
    remarks = dict.fromkeys([*cluster.remarks, *reader.remarks])
    return replace(cluster, booked=[*cluster.booked, *booked], remarks=[*remarks])


async def _moving(client: KubeClient, raw: msgspec.Raw | bytes, *, node: str) -> list[Json]:
    if readable_share_node(raw) is None:
        raise CannotLookError(
            f"GPUShareNode {node} cannot be read, so nobody knows which pods have its cards"
        )
    pods = await pods_on(client, node)
    held = node_ledger(read_share_node(raw), bookings_of(pods))
    uids = {share.uid for share in shares_of(held, card_uuids(held))}
    return [pod for pod in pods if pod["metadata"]["uid"] in uids and not status_of(pod).has_ended]


class _WithName(msgspec.Struct):
    """A GPUShareNode of any shape."""

    metadata: LenientMeta
