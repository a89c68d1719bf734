"""Whether the records of a node surely agree, by a few comparisons: those of nearly every node do. Pure.

The auditor's rules take fifteen times as long. They alone say what differs, and decide wherever this does not
say yes.
"""

from gpushare_core.placement.units import Unit
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.objects.share_node import ShareNode, ShareNodeCard, node_unit


def surely_agree(ledger: Ledger, name: str) -> bool:
    """Returns True only where ``node_differences(node_records(ledger, name))`` is empty. That may be empty
    where this is False, too: in mode Mixed, and while pods come and go."""
    node = ledger.node(name)
    share_node = node.share_node if node else None
    unit = node_unit(share_node.unit) if share_node else None
    if node is None or share_node is None or unit is None:
        return False
    if share_node.classes != tuple(part.resource for part in unit.parts) or len(unit.parts) > 1:
        return False
    return (
        _names_each_card_once(node, share_node)
        and all(_is_bound(ledger, name, uid) for uid in node.holders)
        and all(_agrees(card, node, unit.parts[0]) for card in share_node.cards)
        and sum(len(node.booked_of(card)) for card in node.booked_cards) == _count_of_held(node)
    )


def _names_each_card_once(node: NodeLedger, share_node: ShareNode) -> bool:
    """Returns also whether pods have units of no other card."""
    uuids = {card.uuid for card in share_node.cards}
    return len(uuids) == len(share_node.cards) and node.booked_cards <= uuids


def _is_bound(ledger: Ledger, name: str, uid: str) -> bool:
    """Returns whether a watch has shown the pod on this node, and it is still there."""
    holder = ledger.holder(uid)
    known = ledger.node(name)
    return (
        holder is not None
        and known is not None
        and holder is known.holders.get(uid)
        and holder.node == name
        and uid not in ledger.reservations
        and all(known.booked(uid, card.card) for card in holder.cards)
    )


def _agrees(reported: ShareNodeCard, node: NodeLedger, unit: Unit) -> bool:
    """Returns whether GPUShareNode, annotations and sums say the same of a card that serves one class."""
    return (
        (reported.units, reported.allocated) == node.amounts_of(reported, unit.resource)
        and not (reported.offers or reported.lock)
        and max(reported.units, reported.allocated) <= unit.units_in(reported.memory)
        and _has_same_holders(reported, node)
    )


def _has_same_holders(reported: ShareNodeCard, node: NodeLedger) -> bool:
    booked, holders = node.booked_of(reported.uuid), node.holders
    return (
        len(reported.holders) == len(booked)
        and sum(holder.units for holder in reported.holders) == reported.allocated
        and all(
            0 < holder.units == booked.get(holder.uid, 0) and holder.uid in holders and not holder.orphaned
            for holder in reported.holders
        )
        and len({holder.uid for holder in reported.holders}) == len(reported.holders)
    )


def _count_of_held(node: NodeLedger) -> int:
    """Of pairs of pod and card; an annotation may name a card twice."""
    return sum(len({card.card for card in holder.cards}) for holder in node.holders.values())
