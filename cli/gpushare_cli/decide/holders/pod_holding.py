"""What a pod holds of cards, or waits for."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from gpushare_cli.decide.inspection.shared_card import CardHolder, HolderState, SharedCard, earliest
from gpushare_cli.decide.inspection.shared_node import SharedNode
from gpushare_cli.decide.objects.known_pod import KnownPod

if TYPE_CHECKING:  # the report's shape alone is needed at every start
    from gpushare_cli.decide.inspection.cluster_reading import ClusterReading
    from gpushare_cli.decide.objects.pending_pod import PendingPod


class HolderPhase(StrEnum):
    RUNNING = "Running"
    STARTING = "Starting"
    """It has a node, and its containers do not run yet."""
    WAITING = "Waiting"
    """For a node."""
    TERMINATING = "Terminating"
    ORPHANED = "Orphaned"
    """The API server does not have it, and its kubelet still keeps its units."""


class UnitsOnCard(Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    index: int
    uuid: str
    units: int


class PodHolding(Struct, frozen=True, kw_only=True, rename="camel"):
    namespace: str
    name: str
    uid: str
    state: HolderPhase
    node: str = ""
    """Empty while it waits for one."""
    cards: Sequence[UnitsOnCard] = ()
    units: dict[str, int] = field(default_factory=dict)
    """Name of an extended resource -> what the pod holds, or asks for while it holds nothing."""
    asked_bytes: int | None = None
    """What its units are worth. None while it has no card: that depends on the node."""
    used_bytes: int | None = None
    """None: not known."""
    exceeds: bool = False
    """Whether a container uses more than it asked for."""
    isolation: Sequence[str] = ()
    """What its containers were given to keep them to their units: Hook or Driver."""
    lacks_isolation: bool = False
    """Whether its node asks for isolation, and a container was admitted before that."""
    exceeded_since: str = ""
    """RFC 3339; empty: that is not known of any container."""
    evicted_from: str = ""
    """RFC 3339: when it is evicted if a container still has more then. Empty: it is not."""
    created: str = ""
    """RFC 3339; empty: not known."""
    waits_for: str = ""
    """Why it waits, by kube-scheduler."""

    @property
    def holds(self) -> bool:
        return bool(self.cards)


def pod_holdings(
    nodes: Sequence[SharedNode], reading: "ClusterReading", known: Mapping[str, KnownPod]
) -> list[PodHolding]:
    """Returns every pod that holds units or asks for them, in order of namespace and name.

    ``known``: pods by UID, as far as they were read.
    """
    pending = {pod.metadata.uid: pod for pod in reading.pending}
    holding: dict[str, list[tuple[SharedNode, SharedCard, CardHolder]]] = {}
    for node in nodes:
        for card in node.cards:
            for holder in card.holders:
                holding.setdefault(holder.uid or holder.pod, []).append((node, card, holder))
    found = [_holding(parts, pending.get(uid), known.get(uid)) for uid, parts in holding.items()]
    served = {resource.name for node in nodes for resource in node.resources}
    found += _without_cards((pod for uid, pod in pending.items() if uid not in holding), served)
    return sorted(found, key=lambda pod: (pod.namespace, pod.name))


def _holding(
    parts: Sequence[tuple[SharedNode, SharedCard, CardHolder]],
    pending: "PendingPod | None",
    known: KnownPod | None,
) -> PodHolding:
    node, _, first = parts[0]
    units: dict[str, int] = {}
    for _, card, holder in parts:
        units[card.resource] = units.get(card.resource, 0) + holder.units
    used = [holder.used_bytes for _, _, holder in parts]
    return PodHolding(
        namespace=first.namespace,
        name=first.name,
        uid=first.uid,
        state=_state(first.state, pending, known),
        node=node.name,
        cards=[
            UnitsOnCard(index=card.index, uuid=card.uuid, units=holder.units) for _, card, holder in parts
        ],
        units=units,
        asked_bytes=sum(holder.asked_bytes for _, _, holder in parts),
        used_bytes=None if None in used else sum(size or 0 for size in used),
        exceeds=any(holder.exceeds for _, _, holder in parts),
        isolation=sorted({kind for _, _, holder in parts for kind in holder.isolation}),
        lacks_isolation=any(holder.lacks_isolation for _, _, holder in parts),
        exceeded_since=earliest(holder.exceeded_since for _, _, holder in parts),
        evicted_from=earliest(holder.evicted_from for _, _, holder in parts),
        created=_created(pending, known),
    )


def _state(holder: HolderState, pending: "PendingPod | None", known: KnownPod | None) -> HolderPhase:
    if holder is HolderState.ORPHANED:
        return HolderPhase.ORPHANED
    metadata = pending.metadata if pending else known.metadata if known else None
    if metadata and metadata.deletion_timestamp:
        return HolderPhase.TERMINATING
    is_starting = pending is not None or holder is HolderState.NOT_STARTED
    return HolderPhase.STARTING if is_starting else HolderPhase.RUNNING


def _created(pending: "PendingPod | None", known: KnownPod | None) -> str:
    metadata = pending.metadata if pending else known.metadata if known else None
    return (metadata.creation_timestamp if metadata else None) or ""


def _without_cards(pods: "Iterable[PendingPod]", served: Iterable[str]) -> Iterable[PodHolding]:
    """Names that other device plugins offer as well are ours only where a node serves them."""
    from gpushare_core.dialects.table import SHARED_RESOURCES

    foreign = SHARED_RESOURCES.difference(served)
    for pod in pods:
        units = {asked.name: asked.total for asked in pod.request.resources if asked.name not in foreign}
        if units:
            ends = bool(pod.metadata.deletion_timestamp)
            state = HolderPhase.STARTING if pod.node else HolderPhase.WAITING
            yield PodHolding(
                namespace=pod.metadata.namespace,
                name=pod.metadata.name,
                uid=pod.metadata.uid,
                state=HolderPhase.TERMINATING if ends else state,
                node=pod.node,
                units=units,
                created=pod.metadata.creation_timestamp or "",
                waits_for=pod.reason if not pod.node else "",
            )
