"""Who has how much of which card, by the engine's own ledger: of each pod the larger of what its annotation
and its GPUShareNode say, card by card.

A GPUShareNode follows a moment after its pods: its plugin writes what the kubelet did. Not known here is what
the engine alone knows: reservations for binds under way, and units that are held for preemptors.
"""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

import msgspec

from gpushare_cli.decide.objects.pod_status import status_of
from gpushare_cli.decide.objects.share_node import ObservedCard, ObservedShareNode
from gpushare_core.dialects.table import RESOURCES
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.ledger.node_sums import Share
from gpushare_core.scheduling.objects.holder import PodUpdate, read_pod
from gpushare_core.scheduling.objects.pod import KubePod
from gpushare_core.scheduling.objects.share_node import ShareNode, read_share_node
from gpushare_core.text.json_object import Json


def booking_of(raw: msgspec.Raw | bytes) -> PodUpdate:
    """Returns what the bound pod in ``raw`` (its whole JSON) has by its annotations. Of what a replaced
    system wrote only the card counts: the pod's own request says how much.

    Raises:
        msgspec.DecodeError: it is no pod.
    """
    update = read_pod(raw)
    if update.legacy is None:  # of nearly every pod
        return update
    pod = msgspec.json.decode(raw, type=KubePod)
    legacy = replace(update.legacy, node=pod.spec.node_name, request=pod.request(RESOURCES))
    return msgspec.structs.replace(update, legacy=legacy)


def bookings_of(pods: Iterable[Json]) -> list[PodUpdate]:
    """Returns what those of ``pods``, whole and bound, have by their annotations that have not ended."""
    return [booking_of(msgspec.json.encode(pod)) for pod in pods if not status_of(pod).has_ended]


def by_node(booked: Iterable[PodUpdate]) -> dict[str, list[PodUpdate]]:
    """Returns node -> the pods that count on it by their annotations."""
    found: dict[str, list[PodUpdate]] = {}
    for update in booked:
        if known := update.holder or update.legacy:
            found.setdefault(known.node, []).append(update)
    return found


def ledger_of(share_nodes: Iterable[ShareNode], booked: Iterable[PodUpdate] = ()) -> Ledger:
    """Returns the sums as the engine has them. ``booked``: what bound pods have by their annotations."""
    ledger = Ledger()
    ledger.replace_share_nodes(share_nodes)
    ledger.replace_pods(booked, begun=0.0)
    return ledger


def node_ledger(share_node: ShareNode, booked: Collection[PodUpdate]) -> NodeLedger:
    """Returns the sums of one node: a ledger of thousands of nodes has tens of MiB, which only those need who
    look for room."""
    alone = NodeLedger()
    alone.set_share_node(share_node)
    return (ledger_of([share_node], booked).node(share_node.name) if booked else None) or alone


def observed_ledger(share_node: ObservedShareNode, booked: Collection[PodUpdate]) -> NodeLedger:
    """As ``node_ledger``."""
    return node_ledger(read_share_node(msgspec.json.encode(share_node)), booked)


def card_uuids(node: NodeLedger) -> list[str]:
    """Returns the UUIDs of the cards that the GPUShareNode names, then of the others that pods have."""
    named = [card.uuid for card in node.share_node.cards] if node.share_node else []
    return [*named, *sorted(node.booked_cards - {*named})]


def shares_of(node: NodeLedger, cards: Iterable[str]) -> list[Share]:
    """Returns each pod that has units of ``cards`` (UUIDs), with its units of all these, by name."""
    units: Counter[tuple[str, str, str]] = Counter()
    for share in (share for card in cards for share in node.shares(card)):
        units[share.namespace, share.name, share.uid] += share.units
    return [Share(*pod, held) for pod, held in sorted(units.items()) if held]


def orphaned_uids(cards: Iterable[ObservedCard]) -> set[str]:
    """Returns the UIDs of the pods that have units of ``cards`` and are not in the API server any more."""
    return {share.uid for card in cards for share in card.pods or () if share.orphaned}


def is_held(node: NodeLedger) -> bool:
    """Returns whether units of the node's cards are in use, also where nobody says by whom."""
    return any(card.allocated for card in node.cards()) or bool(shares_of(node, card_uuids(node)))
