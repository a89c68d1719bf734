"""The extender's ledger beside what annotations and the status say."""

from collections.abc import Iterator, Mapping

from gpushare_core.audit.difference import Difference, Kind
from gpushare_core.audit.records import LedgerCard, LedgerShare, NodeRecords, StatusCard
from gpushare_core.audit.rules.capacity import Use, overfull
from gpushare_core.audit.rules.claims import Claim
from gpushare_core.audit.wording import ANNOTATION, LEDGER, LOOK_AT_EXTENDER, STATUS, card_name, list_text


def ledger_differences(records: NodeRecords, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields what the extender says otherwise than the other books; nothing where it was not read."""
    if records.ledger is None:
        return
    for card in records.ledger.cards:
        yield from _pods(records, card, claims)
    uses = (_use(card) for card in records.ledger.cards if card.shares)
    yield from overfull(records, uses, teller=LEDGER, kind=Kind.OVER_COUNTED)
    yield from _missing(records, claims)
    yield from _cards(records)
    yield from _cards_of_its_own(records)


def _use(card: LedgerCard) -> Use:
    """What it keeps for a preemptor beside those that are to go is in the sum alone; of containers that lend
    each other units the shares are more than the sum."""
    shares = sum(share.units for share in card.shares)
    holders = list_text(str(share.pod) for share in card.shares)
    return Use(card=card.uuid, resource=card.lock, units=min(shares, card.allocated), holder=holders)


def _pods(records: NodeRecords, card: LedgerCard, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    for share in card.shares:
        if share.reserved:
            text = f"{LEDGER} keeps {share.units} units for {share.pod}, whose bind is under way"
            yield _about(records, card.uuid, share, Kind.RESERVED, text)
            continue
        claim, reported = claims.get(share.pod.uid), _reported(records, card.uuid, share.pod.uid)
        if claim is None and not reported and records.pods is not None:
            ended = share.pod.uid not in records.pods or records.pods[share.pod.uid].ended
            what = "has ended, or is gone" if ended else "has no annotation"
            text = (
                f"{LEDGER} counts {share.units} units for {share.pod}, which {what}, and {STATUS} counts none"
            )
            yield _about(records, card.uuid, share, Kind.STALE_HOLDER, text)
        elif claim is not None and claim.allocation.node == records.node:
            told = claim.allocation.held().get(card.uuid, 0)
            if share.units != told and claim.justified:
                text = (
                    f"{LEDGER} counts {share.units} units for {share.pod}, {ANNOTATION} says {told}, and"
                    f" {STATUS} {reported}"
                )
                yield _about(records, card.uuid, share, Kind.SHARES_DIFFER, text)


def _reported(records: NodeRecords, card: str, uid: str) -> int:
    found = records.share_node.card(card) if records.share_node else None
    return sum(holder.units for holder in found.holders if holder.key.pod.uid == uid) if found else 0


def _about(records: NodeRecords, card: str, share: LedgerShare, kind: Kind, text: str) -> Difference:
    return Difference(
        node=records.node,
        kind=kind,
        card=card,
        pod=str(share.pod),
        uid=share.pod.uid,
        sentence=f"{card_name(records, card)}: {text}; {LOOK_AT_EXTENDER}",
    )


def _missing(records: NodeRecords, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields what annotations promise and the extender does not count: it would promise it once more."""
    ledger = records.ledger
    for uid, claim in claims.items():
        if claim.allocation.node != records.node or not claim.justified or ledger is None:
            continue
        for card, units in claim.allocation.held().items():
            found = ledger.card(card)
            shares = found.shares if found else ()
            if units and found and not any(share.pod.uid == uid for share in shares):
                yield Difference(
                    node=records.node,
                    kind=Kind.UNCOUNTED,
                    card=card,
                    pod=str(claim.pod.key),
                    uid=uid,
                    sentence=f"{card_name(records, card)}: {ANNOTATION} gives {claim.pod.key} {units} units,"
                    f" and {LEDGER} counts none: it would promise them once more; {LOOK_AT_EXTENDER}",
                )


def _cards(records: NodeRecords) -> Iterator[Difference]:
    share_node, ledger = records.share_node, records.ledger
    for card in share_node.cards if share_node and ledger else ():
        found = ledger.card(card.uuid) if ledger else None
        if found is None:
            yield _card(records, card, Kind.CAPACITY_DIFFERS, f"{STATUS} has it, and {LEDGER} does not")
            continue
        if found.lock is not card.lock and share_node and _is_mixed(records):
            text = f"it serves {card.lock or 'every class'} by {STATUS}, and {found.lock or 'every class'} by"
            yield _card(records, card, Kind.LOCK_DIFFERS, f"{text} {LEDGER}")
        elif found.units != card.units:
            text = f"it has {card.units} units by {STATUS}, and {found.units} by {LEDGER}"
            yield _card(records, card, Kind.CAPACITY_DIFFERS, text)
        if found.allocated < card.allocated:
            text = (
                f"{card.allocated} units of it are allocated by {STATUS}, and {found.allocated} by {LEDGER}"
            )
            yield _card(records, card, Kind.UNCOUNTED, f"{text}: units that are in use look free")


def _cards_of_its_own(records: NodeRecords) -> Iterator[Difference]:
    share_node, ledger = records.share_node, records.ledger
    for card in ledger.cards if share_node and ledger else ():
        if card.units and share_node and share_node.card(card.uuid) is None:
            yield Difference(
                node=records.node,
                kind=Kind.CAPACITY_DIFFERS,
                card=card.uuid,
                sentence=f"{card_name(records, card.uuid)}: {LEDGER} brings pods to its {card.units} units,"
                f" and {STATUS} does not have it; {LOOK_AT_EXTENDER}",
            )


def _is_mixed(records: NodeRecords) -> bool:
    unit = records.share_node.unit if records.share_node else None
    return unit is not None and len(unit.parts) > 1


def _card(records: NodeRecords, card: StatusCard, kind: Kind, text: str) -> Difference:
    return Difference(
        node=records.node,
        kind=kind,
        card=card.uuid,
        sentence=f"{card_name(records, card.uuid)}: {text}; {LOOK_AT_EXTENDER}",
    )
