"""Reads what there is to know of one pod: GPUShareNodes, and only the pods that are needed."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

import msgspec

from gpushare_cli.decide.ledger import booking_of, ledger_of
from gpushare_cli.decide.objects.pod_event import EVICTED_FOR_MEMORY, ObservedEvent
from gpushare_cli.decide.why.nearest import MAX_NODES, fitting_nodes, nearest_nodes
from gpushare_cli.decide.why.situation import SHARE_NODES_NAME, PodSituation, read_kube_pod
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import PodScope, bound_to, read_list
from gpushare_cli.gather.why.cluster_facts import read_cluster_facts
from gpushare_cli.gather.why.share_nodes import ObservedShareNodes
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.paths import DISRUPTION_BUDGETS, PODS, SHARE_NODES, events
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.share_node import read_share_node
from gpushare_core.scheduling.preemption.bound_pods import OwnedPod, PodList
from gpushare_core.scheduling.preemption.disruption_budgets import Budget
from gpushare_core.text.json_object import UNREADABLE_JSON, Json

T = TypeVar("T")
_ReadPod = tuple[msgspec.Raw, OwnedPod]
"""A pod as it came and as it is kept."""

PENDING = "status.phase=Pending"


@dataclass(slots=True)
class LenientReader:
    """Reads lists; what cannot be read is noted, and empty."""

    client: KubeClient
    known: Mapping[str, msgspec.Raw] | None = None
    """GPUShareNodes by name; None: they are read."""
    unread: dict[str, str] = field(default_factory=dict)

    async def share_nodes(self, node: str = "") -> Sequence[msgspec.Raw] | None:
        """Returns all GPUShareNodes, or that of ``node``."""
        if self.known is not None:
            return [raw for name, raw in self.known.items() if node in ("", name)]
        selector = f"metadata.name={node}" if node else ""
        return await self.list(SHARE_NODES_NAME, SHARE_NODES, shape=msgspec.Raw, field_selector=selector)

    async def list(self, what: str, path: str, *, shape: type[T], field_selector: str = "") -> list[T] | None:
        try:
            return await read_list(self.client, path, shape=shape, field_selector=field_selector)
        except CannotLookError as error:
            self.unread[what] = str(error)
            return None

    async def pending_pods(self, namespace: str) -> Sequence[msgspec.Raw]:
        """Returns those of all namespaces; of ``namespace`` where the others may not be listed."""
        scope = PodScope(own=namespace)
        try:
            found, refused = await scope.listed(self.client, shape=msgspec.Raw, field_selector=PENDING)
        except CannotLookError as error:
            self.unread["Pending pods"] = str(error)
            return ()
        if refused:
            self.unread["Pending pods of other namespaces"] = str(refused)
        return found


async def read_situation(
    client: KubeClient,
    pod: Json,
    *,
    exists: bool,
    now: datetime,
    share_nodes: Mapping[str, msgspec.Raw] | None = None,
) -> PodSituation:
    """``share_nodes``: GPUShareNodes that are known already, by name; None: they are read.

    Raises ``CannotLookError`` where ``pod`` is none.
    """
    try:
        kube_pod = read_kube_pod(pod)
    except msgspec.ValidationError as error:
        raise CannotLookError(f"the pod cannot be read: {error}") from error
    reader = LenientReader(client, share_nodes)
    if kube_pod.spec.node_name:
        return await _bound(reader, pod, kube_pod, now=now)
    return await _waiting(reader, pod, kube_pod, exists=exists, now=now)


async def _bound(reader: LenientReader, pod: Json, kube_pod: KubePod, *, now: datetime) -> PodSituation:
    """Of a pod that is bound the cluster beside its node does not matter."""
    node = kube_pod.spec.node_name
    share_nodes, others, found, evictions = await asyncio.gather(
        reader.share_nodes(node),
        _pods_on(reader, node),
        _events(reader, kube_pod),
        _evictions(reader, pod, kube_pod),
    )
    bound = [*(raw for raw, _ in others or ()), msgspec.Raw(msgspec.json.encode(pod))]
    ledger, observed = _ledger(share_nodes or (), bound)
    return PodSituation(
        pod=pod,
        kube_pod=kube_pod,
        request=kube_pod.request(ledger.resources),
        exists=True,
        now=now,
        ledger=ledger,
        share_nodes=observed,
        events=found,
        evictions=evictions or (),
        unread=reader.unread,
    )


async def _waiting(
    reader: LenientReader, pod: Json, kube_pod: KubePod, *, exists: bool, now: datetime
) -> PodSituation:
    namespace = kube_pod.metadata.namespace
    share_nodes, pending, found, evictions, cluster = await asyncio.gather(
        reader.share_nodes(),
        reader.pending_pods(namespace),
        _events(reader, kube_pod) if exists else _no_events(),
        _evictions(reader, pod, kube_pod) if exists else _no_events(),
        read_cluster_facts(reader.client, pod, namespace=namespace),
    )
    others = read_pods(pending)
    ledger, observed = _ledger(share_nodes or (), [raw for raw, other in others if other.spec.node_name])
    situation = PodSituation(
        pod=pod,
        kube_pod=kube_pod,
        request=kube_pod.request(ledger.resources),
        exists=exists,
        now=now,
        ledger=ledger,
        share_nodes=observed,
        waiting=[
            other
            for _, other in others
            if not other.spec.node_name and other.metadata.uid != kube_pod.metadata.uid
        ],
        events=found,
        evictions=evictions or (),
        cluster=cluster,
        unread=reader.unread,
    )
    return await _with_neighbours(reader, situation)


async def _with_neighbours(reader: LenientReader, situation: PodSituation) -> PodSituation:
    """Reads who takes CPU and memory on nodes whose cards fit, else who could make room on those that come
    closest. What is found there may leave no room, so that other nodes come closest."""
    budgets: list[Budget] | None = None
    read: dict[str, list[_ReadPod] | None] = {}
    while nodes := [node for node in _closest(situation) if node not in read]:
        if not read:
            budgets = await reader.list("PodDisruptionBudgets", DISRUPTION_BUDGETS, shape=Budget)
        read |= zip(nodes, await asyncio.gather(*(_pods_on(reader, node) for node in nodes)), strict=True)
        for raw, _ in (pod for node in nodes for pod in read[node] or ()):
            situation.ledger.set_pod(booking_of(raw))
    neighbours = {
        node: PodList(items=[pod for _, pod in pods]).pods()
        for node, pods in read.items()
        if pods is not None
    }
    return replace(situation, neighbours=neighbours, budgets=budgets)


def _closest(situation: PodSituation) -> list[str]:
    if not situation.request.resources:
        return []
    return fitting_nodes(situation)[:MAX_NODES] or nearest_nodes(situation)


async def _pods_on(reader: LenientReader, node: str) -> list[_ReadPod] | None:
    found = await reader.list(f"pods on {node}", PODS, shape=msgspec.Raw, field_selector=bound_to(node))
    return None if found is None else read_pods(found)


async def _events(reader: LenientReader, pod: KubePod) -> list[ObservedEvent] | None:
    selector = f"regarding.kind=Pod,regarding.name={pod.metadata.name},regarding.uid={pod.metadata.uid}"
    path = events(pod.metadata.namespace)
    found = await reader.list("Events of the pod", path, shape=ObservedEvent, field_selector=selector)
    return None if found is None else sorted(found, key=lambda event: event.last_seen, reverse=True)


async def _evictions(reader: LenientReader, pod: Json, kube_pod: KubePod) -> list[ObservedEvent] | None:
    """Of a pod that something has made, for it may be in the place of one that was evicted."""
    if not pod["metadata"].get("ownerReferences"):
        return []
    selector = f"regarding.kind=Pod,reason={EVICTED_FOR_MEMORY}"
    path = events(kube_pod.metadata.namespace)
    return await reader.list("Events of the pod", path, shape=ObservedEvent, field_selector=selector)


async def _no_events() -> list[ObservedEvent] | None:
    return []


class _GatedSpec(msgspec.Struct, rename="camel"):
    scheduling_gates: list[msgspec.Raw] | None = None


class _GatedPod(msgspec.Struct):
    spec: _GatedSpec


def read_pods(pods: Iterable[msgspec.Raw]) -> list[_ReadPod]:
    """Returns ``pods`` without those that no API server would have, and of those that are not bound without
    the ones that no scheduler looks at: gated ones, and those that are being deleted."""
    read: list[_ReadPod] = []
    for raw in pods:
        with suppress(*UNREADABLE_JSON):
            pod = msgspec.json.decode(raw, type=OwnedPod)
            gates = msgspec.json.decode(raw, type=_GatedPod).spec.scheduling_gates
            if pod.spec.node_name or not (pod.metadata.deletion_timestamp or gates):
                read.append((raw, pod))
    return read


def _ledger(
    share_nodes: Sequence[msgspec.Raw], bound: Iterable[msgspec.Raw]
) -> tuple[Ledger, ObservedShareNodes]:
    """``bound``: pods that a GPUShareNode may not show yet."""
    read = [read_share_node(raw) for raw in share_nodes]
    names = (node.name for node in read)
    observed = ObservedShareNodes(dict(zip(names, share_nodes, strict=True)))
    return ledger_of(read, map(booking_of, bound)), observed
