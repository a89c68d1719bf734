"""The extender's ledger has the same pods and cards as annotations and status."""

from collections.abc import Iterator, Mapping

from gpushare_core.audit.difference import (
    ANNOTATION,
    LEDGER,
    LOOK_AT_EXTENDER,
    STATUS,
    Difference,
    DifferenceKind,
    card_name,
    list_text,
)
from gpushare_core.audit.records import LedgerCard, LedgerRecord, NodeRecords, PodKey, ShareNodeRecord
from gpushare_core.audit.rules.capacity import UnitsTaken, overfull
from gpushare_core.audit.rules.claims import Claim


def ledger_differences(records: NodeRecords, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields where the ledger differs from the other books; nothing where it was not read."""
    ledger = records.ledger
    if ledger is None:
        return
    for card in ledger.cards:
        yield from _pods(records, card, claims)
    uses = (_use(card) for card in ledger.cards if card.shares)
    yield from overfull(records, uses, teller=LEDGER, kind=DifferenceKind.OVER_COUNTED)
    yield from _missing(records, ledger, claims)
    if records.share_node is not None:
        yield from _cards(records, records.share_node, ledger)


def _use(card: LedgerCard) -> UnitsTaken:
    """Returns the lesser of the card's sum and its shares.

    1. The sum is greater where units are held for a preemptor beside its victims.
    2. The shares are greater where containers lend each other units.
    """
    shares = sum(share.units for share in card.shares)
    holders = list_text(str(share.pod) for share in card.shares)
    return UnitsTaken(card=card.uuid, resource=card.lock, units=min(shares, card.allocated), holder=holders)


def _pods(records: NodeRecords, card: LedgerCard, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    for share in card.shares:
        if share.reserved:
            text = f"{LEDGER} keeps {share.units} units for {share.pod}, whose bind is under way"
            yield _about(records, card.uuid, share.pod, DifferenceKind.RESERVED, text)
            continue
        claim, reported = claims.get(share.pod.uid), _reported(records, card.uuid, share.pod.uid)
        if claim is None and not reported and records.pods is not None:
            ended = share.pod.uid not in records.pods or records.pods[share.pod.uid].ended
            what = "has ended, or is gone" if ended else "has no annotation"
            text = (
                f"{LEDGER} counts {share.units} units for {share.pod}, which {what}, and {STATUS} counts none"
            )
            yield _about(records, card.uuid, share.pod, DifferenceKind.STALE_HOLDER, text)
        elif claim is not None and claim.allocation.node == records.node:
            annotated = claim.allocation.held().get(card.uuid, 0)
            if share.units != annotated and claim.justified:
                text = (
                    f"{LEDGER} counts {share.units} units for {share.pod}, {ANNOTATION} says {annotated}, and"
                    f" {STATUS} {reported}"
                )
                yield _about(records, card.uuid, share.pod, DifferenceKind.SHARES_DIFFER, text)


def _reported(records: NodeRecords, card: str, uid: str) -> int:
    found = records.share_node.card(card) if records.share_node else None
    return sum(holder.units for holder in found.holders if holder.key.pod.uid == uid) if found else 0


def _about(records: NodeRecords, card: str, pod: PodKey, kind: DifferenceKind, text: str) -> Difference:
    sentence = f"{card_name(records, card)}: {text}; {LOOK_AT_EXTENDER}"
    return Difference.of_pod(records, pod, kind, sentence, card=card)


def _missing(records: NodeRecords, ledger: LedgerRecord, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields the pods whose annotation says that they have units of a card, and that the extender does not
    count there: it would promise these units once more."""
    for uid, claim in claims.items():
        if claim.allocation.node != records.node or not claim.justified:
            continue
        for card, units in claim.allocation.held().items():
            found = ledger.card(card)
            if units and found and not any(share.pod.uid == uid for share in found.shares):
                text = (
                    f"{ANNOTATION} gives {claim.pod.key} {units} units, and {LEDGER} counts none: it would"
                    " promise them again"
                )
                yield _about(records, card, claim.pod.key, DifferenceKind.UNCOUNTED, text)


def _cards(records: NodeRecords, share_node: ShareNodeRecord, ledger: LedgerRecord) -> Iterator[Difference]:
    for card in share_node.cards:
        found = ledger.card(card.uuid)
        if found is None:
            text = f"{STATUS} has it, and {LEDGER} does not"
            yield _card(records, card.uuid, DifferenceKind.CAPACITY_DIFFERS, text)
            continue
        if found.lock is not card.lock and share_node.mixed_cards:
            text = f"it serves {card.lock or 'every class'} by {STATUS}, and {found.lock or 'every class'} by"
            yield _card(records, card.uuid, DifferenceKind.LOCK_DIFFERS, f"{text} {LEDGER}")
        elif found.units != card.units:
            text = f"it has {card.units} units by {STATUS}, and {found.units} by {LEDGER}"
            yield _card(records, card.uuid, DifferenceKind.CAPACITY_DIFFERS, text)
        if found.allocated < card.allocated:
            text = f"{card.allocated} units of it are allocated by {STATUS}, and {found.allocated} by"
            text = f"{text} {LEDGER}: units that are in use look free"
            yield _card(records, card.uuid, DifferenceKind.UNCOUNTED, text)
    for own in ledger.cards:
        if own.units and share_node.card(own.uuid) is None:
            text = f"{LEDGER} places pods on its {own.units} units, but {STATUS} does not have it"
            yield _card(records, own.uuid, DifferenceKind.CAPACITY_DIFFERS, text)


def _card(records: NodeRecords, card: str, kind: DifferenceKind, text: str) -> Difference:
    return Difference.of_card(records, card, kind, text, advice=LOOK_AT_EXTENDER)
