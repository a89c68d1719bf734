"""What is read of shared cards: GPUShareNodes, and pods that have not started."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import NamedTuple, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Raw, Struct

from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
from gpushare_cli.decide.inspection.inspection import MissingNode
from gpushare_cli.decide.inspection.node_reader import shared_nodes
from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.decide.inspection.unmeasured import unmeasured_sentences
from gpushare_cli.decide.objects.pending_pod import PendingPod, read_pending_pod
from gpushare_cli.errors import CannotLookError
from gpushare_cli.gather.lists import ALL_PODS, MAX_NODES_WITH_PODS, PENDING, InScope, PodScope, read_list
from gpushare_cli.gather.pod_holders import read_booked
from gpushare_core.kube.client import KubeClient
from gpushare_core.kube.errors import ApiError, UnreachableError
from gpushare_core.kube.paths import NODES, SHARE_NODES
from gpushare_core.scheduling.objects.holder import PodUpdate
from gpushare_core.text.json_object import UNREADABLE_JSON

T = TypeVar("T")

INSTALLED = "see that gpushare is installed (kubectl get crd gpusharenodes.gpushare.io), and that you may"
"""Ends with what the reader has to be allowed."""
LISTS_SHARE_NODES = f"{INSTALLED} list GPUShareNodes (kubectl auth can-i list gpusharenodes.gpushare.io)"

UNCOUNTED = "Pods that no GPUShareNode shows yet are not counted"
UNSHOWN = f"{UNCOUNTED}, and pods that wait are not shown"
CLOSED_UNKNOWN = "It is not known which nodes are closed by kubectl cordon"


class _NamedMeta(Struct):
    name: str


class NodeName(Struct):
    """Metadata of a Node, as far as it is needed."""

    metadata: _NamedMeta


async def read_shared_cards(
    client: KubeClient,
    *,
    scope: PodScope = ALL_PODS,
    nodes: Sequence[str] = (),
    share_nodes: Sequence[Raw] | None = None,
    pending: InScope[list[Raw]] | None = None,
) -> ClusterReading:
    """Reads all nodes. ``nodes``: where only these matter; one alone is read alone. ``share_nodes``,
    ``pending``: GPUShareNodes, and pods in phase Pending, that are known already.

    Raises:
        CannotLookError: GPUShareNodes cannot be read. What else cannot is said in the reading.
    """
    unread: list[str] = []
    node = nodes[0] if len(nodes) == 1 else ""
    raws, pods, unschedulable = await asyncio.gather(
        _share_nodes(client, node) if share_nodes is None else _known(share_nodes),
        _or_nothing(lambda: _pending_pods(client, node, scope, pending), unread, UNSHOWN),
        _or_nothing(lambda: _unschedulable_nodes(client), unread, CLOSED_UNKNOWN),
    )
    found, refused = pods or InScope(())
    unread += scope.unknown(UNSHOWN, refused)
    booked = await _booked(client, _names_of(raws, nodes), unread, scope.narrowed(refused)) if pods else ()
    return ClusterReading(
        share_nodes=raws,
        pending=found,
        booked=booked,
        unschedulable_nodes=frozenset(unschedulable or ()),
        unread=unread,
    )


async def _share_nodes(client: KubeClient, node: str) -> Sequence[Raw]:
    selector = f"metadata.name={node}" if node else ""
    return await read_list(client, SHARE_NODES, shape=Raw, field_selector=selector, advice=LISTS_SHARE_NODES)


async def _known(share_nodes: Sequence[Raw]) -> Sequence[Raw]:
    return share_nodes


class SharedCards(NamedTuple):
    """What was read, and what it says of each node."""

    reading: ClusterReading
    nodes: Sequence[SharedNode]
    unmeasured: Sequence[str]
    """Sentences: why use is not known, and of which nodes."""


async def read_shared_nodes(client: KubeClient, scope: PodScope) -> SharedCards:
    """Raises as ``read_shared_cards``."""
    reading = await read_shared_cards(client, scope=scope)
    nodes = shared_nodes(reading)
    return SharedCards(reading, nodes, unmeasured_sentences(nodes))


def _names_of(share_nodes: Iterable[Raw], nodes: Collection[str]) -> Collection[str]:
    """Returns the names of those that matter."""
    return [name for name in map(_name_of, share_nodes) if name and (name in nodes or not nodes)]


async def _booked(
    client: KubeClient, names: Collection[str], unread: list[str], scope: PodScope
) -> Sequence[PodUpdate]:
    """Reads pods after those in phase Pending, so that none is missed that begins to run in between. Of many
    nodes it reads none: people wait for that, and a GPUShareNode shows its pods a moment later."""
    if len(names) > MAX_NODES_WITH_PODS:
        return ()
    return await _or_nothing(lambda: read_booked(client, names, scope), unread, UNCOUNTED) or ()


def _name_of(raw: Raw) -> str:
    """Returns nothing for what cannot be read."""
    with suppress(*UNREADABLE_JSON):
        return msgspec.json.decode(raw, type=NodeName).metadata.name
    return ""


async def _or_nothing(read: Callable[[], Awaitable[T]], unread: list[str], unknown: str) -> T | None:
    """Calls ``read`` itself: a coroutine that came as an argument would never be awaited after a Ctrl-C."""
    try:
        return await read()
    except CannotLookError as error:
        unread.append(f"{unknown}: {error}.")
        return None


async def _pending_pods(
    client: KubeClient, node: str, scope: PodScope, known: InScope[list[Raw]] | None
) -> InScope[Sequence[PendingPod]]:
    selector = f"spec.nodeName={node},{PENDING}" if node else PENDING
    raws, refused = known or await scope.listed(client, shape=Raw, field_selector=selector)
    return InScope([pod for raw in raws if (pod := read_pending_pod(raw)) is not None], refused)


async def _unschedulable_nodes(client: KubeClient) -> Sequence[str]:
    return await _node_names(client, field_selector="spec.unschedulable=true")


async def _node_names(client: KubeClient, **selectors: str) -> Sequence[str]:
    nodes = await read_list(client, NODES, shape=NodeName, metadata_only=True, **selectors)
    return [node.metadata.name for node in nodes]


async def read_labelled_nodes(client: KubeClient, selector: str) -> frozenset[str]:
    """Returns the names of the Nodes that ``selector`` chooses.

    Raises:
        CannotLookError: Nodes cannot be read, or ``selector`` makes no sense.
    """
    return frozenset(await _node_names(client, label_selector=selector))


async def missing_nodes(
    client: KubeClient, names: Collection[str], present: Callable[[str], bool]
) -> Sequence[MissingNode]:
    """Returns those of ``names`` that have no GPUShareNode, and why."""
    missing = [name for name in dict.fromkeys(names) if not present(name)]
    reasons = await asyncio.gather(*(_missing_reason(client, name) for name in missing))
    return [MissingNode(name=name, reason=reason) for name, reason in zip(missing, reasons, strict=True)]


async def _missing_reason(client: KubeClient, name: str) -> str:
    try:
        await client.get(f"{NODES}/{quote(name, safe='')}")
    except ApiError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return "there is no node of this name (kubectl get nodes)"
        return "it has no GPUShareNode: it shares no cards, or is no node"
    except UnreachableError:
        return "it has no GPUShareNode"
    return "no policy shares its cards (kubectl get gpusharepolicies; kubectl gpushare status)"
