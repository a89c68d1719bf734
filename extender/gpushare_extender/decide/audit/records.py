"""What the extender knows of a node, as the auditor reads it: its sums, annotations, and the GPUShareNode.

The extender keeps no containers, only what a pod has of a card: here each pod is one container without name.
"""

from collections.abc import Collection, Iterator

from gpushare_core.allocation_annotation import Allocation, encode_allocation
from gpushare_core.audit.auditor import node_differences
from gpushare_core.audit.difference import Difference
from gpushare_core.audit.records import (
    ContainerKey,
    LedgerCard,
    LedgerRecord,
    LedgerShare,
    NodeRecords,
    PodKey,
    PodRecord,
    ShareNodeRecord,
    StatusCard,
    StatusHolder,
)
from gpushare_core.dialects.dialect import Dialect
from gpushare_core.placement.card_choice import Card
from gpushare_core.scheduling.ledger.ledger import Ledger
from gpushare_core.scheduling.ledger.node_ledger import NodeLedger
from gpushare_core.scheduling.objects.holder import Holder
from gpushare_core.scheduling.objects.share_node import ReportedHolder, ShareNode, ShareNodeCard, node_unit

NO_CONTAINER = ""


def node_records(ledger: Ledger, name: str) -> NodeRecords | None:
    """Returns None where there is nothing to compare: for a node without a GPUShareNode, and until its plugin
    has written there what is shared, as after a policy was applied anew beside running pods."""
    node = ledger.node(name)
    if node is None or node.share_node is None or not node.share_node.unit:
        return None
    return NodeRecords(
        node=name,
        share_node=_share_node(node, node.share_node),
        pods={
            **_without_annotation(node.share_node),
            **{holder.uid: _pod(holder, node, node.share_node) for holder in _bound(ledger, node)},
        },
        ledger=LedgerRecord(
            unit=node_unit(node.share_node.unit),
            cards=tuple(_ledger_card(ledger, node, card) for card in node.cards()),
        ),
    )


def settled_differences(records: NodeRecords, unreleased: Collection[str]) -> list[Difference]:
    """Returns what differs on a node that keeps changing, without:

    1. Differences of the pods ``unreleased`` (UIDs): for a while these count in the ledger alone.
    2. Differences of a card as a whole while a pod comes to it or leaves it: each time that would be another
       pod, and look like one lasting difference.
    """
    moving = {*unreleased, *_unreported(records)}
    cards = records.ledger.cards if records.ledger else ()
    used = {card.uuid for card in cards if any(share.pod.uid in moving for share in card.shares)}
    found = node_differences(records)
    return [
        difference
        for difference in found
        if difference.uid not in unreleased and (difference.uid or difference.card not in used)
    ]


def _unreported(records: NodeRecords) -> set[str]:
    """Returns the UIDs of the pods that the ledger counts, and that the plugin has not reported."""
    cards = records.share_node.cards if records.share_node else ()
    reported = {holder.key.pod.uid for card in cards for holder in card.holders}
    counted = records.ledger.cards if records.ledger else ()
    return {share.pod.uid for card in counted for share in card.shares} - reported


def _without_annotation(share_node: ShareNode) -> dict[str, PodRecord]:
    """Returns the pods that the plugin knows by the API, as if they had no annotation."""
    return {
        holder.uid: PodRecord(key=PodKey(holder.namespace, holder.name, holder.uid), node=share_node.name)
        for card in share_node.cards
        for holder in card.holders
        if not holder.orphaned
    }


def _bound(ledger: Ledger, node: NodeLedger) -> Iterator[Holder]:
    """Yields the pods whose annotation a watch has shown, and that are still there."""
    for uid, holder in node.holders.items():
        if ledger.holder(uid) is holder and uid not in ledger.reservations:
            yield holder


def _pod(holder: Holder, node: NodeLedger, share_node: ShareNode) -> PodRecord:
    key = PodKey(holder.namespace, holder.name, holder.uid)
    annotations = {Dialect.allocation_annotation: _annotation(holder, node, share_node)}
    return PodRecord(key=key, node=holder.node, annotations=annotations)


def _annotation(holder: Holder, node: NodeLedger, share_node: ShareNode) -> str:
    """Returns what the pod's annotation said, in the node's units."""
    units = {own.card: _unit(holder, own.card, share_node) for own in holder.cards}
    first = next(iter(units.values()), share_node.unit)
    allocation = Allocation(
        node=holder.node,
        uid=holder.uid,
        at="",
        unit=first,
        containers={NO_CONTAINER: {card: node.booked(holder.uid, card) for card in units}},
        other_units={card: text for card, text in units.items() if text != first},
    )
    return encode_allocation(allocation)


def _unit(holder: Holder, card: str, share_node: ShareNode) -> str:
    meaning = holder.meaning_of(card)
    classes = [meaning[0]] if meaning else [*share_node.classes]
    return next((unit for served in classes if (unit := share_node.unit_of(served))), share_node.unit)


def _share_node(node: NodeLedger, share_node: ShareNode) -> ShareNodeRecord:
    return ShareNodeRecord(
        name=share_node.name,
        unit=node_unit(share_node.unit),
        dialect=share_node.dialect.name,
        cards=tuple(_status_card(node, card) for card in share_node.cards),
    )


def _status_card(node: NodeLedger, card: ShareNodeCard) -> StatusCard:
    given = node.given(card)
    holders = (
        StatusHolder(
            key=ContainerKey(PodKey(holder.namespace, holder.name, holder.uid), NO_CONTAINER),
            units=_as_a_whole(holder, card, node.booked(holder.uid, card.uuid), given[holder.uid]),
            orphaned=holder.orphaned,
        )
        for holder in card.holders
    )
    return StatusCard(
        uuid=card.uuid,
        index=card.index,
        memory=card.memory,
        units=card.units,
        allocated=card.allocated,
        lock=card.lock,
        offers=card.offers,
        healthy=card.healthy,
        cordoned=card.cordoned,
        holders=tuple(holders),
    )


def _as_a_whole(reported: ReportedHolder, card: ShareNodeCard, booked: int, given: int) -> int:
    """Returns what a pod has of ``card`` by its GPUShareNode, which reports containers: where these lend each
    other units, and that can be what is ``booked``, it is."""
    lends = sum(holder.units for holder in card.holders) > card.allocated
    return booked if lends and reported.least <= booked <= reported.units else given


def _ledger_card(ledger: Ledger, node: NodeLedger, card: Card) -> LedgerCard:
    shares = (
        LedgerShare(
            pod=PodKey(share.namespace, share.name, share.uid),
            units=share.units,
            reserved=share.uid in ledger.reservations,
        )
        for share in node.shares(card.uuid)
        if share.units
    )
    return LedgerCard(
        uuid=card.uuid,
        units=card.units,
        allocated=card.allocated,
        lock=node.lock_of(card.uuid),
        shares=tuple(shares),
    )
