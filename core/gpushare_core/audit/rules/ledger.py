"""The extender's ledger beside what annotations and the status say."""

from collections.abc import Iterator, Mapping

from gpushare_core.audit.difference import Difference, Kind
from gpushare_core.audit.records import LedgerCard, LedgerShare, NodeBooks, StatusCard
from gpushare_core.audit.rules.capacity import Use, overfull
from gpushare_core.audit.rules.claims import Claim
from gpushare_core.audit.wording import ANNOTATION, LEDGER, LOOK_AT_EXTENDER, STATUS, card_name, list_text


def ledger_differences(books: NodeBooks, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields what the extender says otherwise than the other books; nothing where it was not read."""
    if books.ledger is None:
        return
    for card in books.ledger.cards:
        yield from _pods(books, card, claims)
    uses = (_use(card) for card in books.ledger.cards if card.shares)
    yield from overfull(books, uses, teller=LEDGER, kind=Kind.OVER_COUNTED)
    yield from _missing(books, claims)
    yield from _cards(books)
    yield from _cards_of_its_own(books)


def _use(card: LedgerCard) -> Use:
    """What it keeps for a preemptor beside those that are to go is in the sum alone; of containers that lend
    each other units the shares are more than the sum."""
    shares = sum(share.units for share in card.shares)
    holders = list_text(str(share.pod) for share in card.shares)
    return Use(card=card.uuid, resource=card.lock, units=min(shares, card.allocated), holder=holders)


def _pods(books: NodeBooks, card: LedgerCard, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    for share in card.shares:
        if share.reserved:
            text = f"{LEDGER} keeps {share.units} units for {share.pod}, whose bind is under way"
            yield _about(books, card.uuid, share, Kind.RESERVED, text)
            continue
        claim, reported = claims.get(share.pod.uid), _reported(books, card.uuid, share.pod.uid)
        if claim is None and not reported and books.pods is not None:
            ended = share.pod.uid not in books.pods or books.pods[share.pod.uid].ended
            what = "has ended, or is gone" if ended else "has no annotation"
            text = (
                f"{LEDGER} counts {share.units} units for {share.pod}, which {what}, and {STATUS} counts none"
            )
            yield _about(books, card.uuid, share, Kind.STALE_HOLDER, text)
        elif claim is not None and claim.allocation.node == books.node:
            told = claim.allocation.held().get(card.uuid, 0)
            if share.units != told and claim.justified:
                text = (
                    f"{LEDGER} counts {share.units} units for {share.pod}, {ANNOTATION} says {told}, and"
                    f" {STATUS} {reported}"
                )
                yield _about(books, card.uuid, share, Kind.SHARES_DIFFER, text)


def _reported(books: NodeBooks, card: str, uid: str) -> int:
    found = books.share_node.card(card) if books.share_node else None
    return sum(holder.units for holder in found.holders if holder.key.pod.uid == uid) if found else 0


def _about(books: NodeBooks, card: str, share: LedgerShare, kind: Kind, text: str) -> Difference:
    return Difference(
        node=books.node,
        kind=kind,
        card=card,
        pod=str(share.pod),
        uid=share.pod.uid,
        sentence=f"{card_name(books, card)}: {text}; {LOOK_AT_EXTENDER}",
    )


def _missing(books: NodeBooks, claims: Mapping[str, Claim]) -> Iterator[Difference]:
    """Yields what annotations promise and the extender does not count: it would promise it once more."""
    ledger = books.ledger
    for uid, claim in claims.items():
        if claim.allocation.node != books.node or not claim.justified or ledger is None:
            continue
        for card, units in claim.allocation.held().items():
            found = ledger.card(card)
            shares = found.shares if found else ()
            if units and found and not any(share.pod.uid == uid for share in shares):
                yield Difference(
                    node=books.node,
                    kind=Kind.UNCOUNTED,
                    card=card,
                    pod=str(claim.pod.key),
                    uid=uid,
                    sentence=f"{card_name(books, card)}: {ANNOTATION} gives {claim.pod.key} {units} units,"
                    f" and {LEDGER} counts none: it would promise them once more; {LOOK_AT_EXTENDER}",
                )


def _cards(books: NodeBooks) -> Iterator[Difference]:
    share_node, ledger = books.share_node, books.ledger
    for card in share_node.cards if share_node and ledger else ():
        found = ledger.card(card.uuid) if ledger else None
        if found is None:
            yield _card(books, card, Kind.CAPACITY_DIFFERS, f"{STATUS} has it, and {LEDGER} does not")
            continue
        if found.lock is not card.lock and share_node and _is_mixed(books):
            text = f"it serves {card.lock or 'every class'} by {STATUS}, and {found.lock or 'every class'} by"
            yield _card(books, card, Kind.LOCK_DIFFERS, f"{text} {LEDGER}")
        elif found.units != card.units:
            text = f"it has {card.units} units by {STATUS}, and {found.units} by {LEDGER}"
            yield _card(books, card, Kind.CAPACITY_DIFFERS, text)
        if found.allocated < card.allocated:
            text = (
                f"{card.allocated} units of it are allocated by {STATUS}, and {found.allocated} by {LEDGER}"
            )
            yield _card(books, card, Kind.UNCOUNTED, f"{text}: units that are in use look free")


def _cards_of_its_own(books: NodeBooks) -> Iterator[Difference]:
    share_node, ledger = books.share_node, books.ledger
    for card in ledger.cards if share_node and ledger else ():
        if card.units and share_node and share_node.card(card.uuid) is None:
            yield Difference(
                node=books.node,
                kind=Kind.CAPACITY_DIFFERS,
                card=card.uuid,
                sentence=f"{card_name(books, card.uuid)}: {LEDGER} brings pods to its {card.units} units, and"
                f" {STATUS} does not have it; {LOOK_AT_EXTENDER}",
            )


def _is_mixed(books: NodeBooks) -> bool:
    unit = books.share_node.unit if books.share_node else None
    return unit is not None and len(unit.parts) > 1


def _card(books: NodeBooks, card: StatusCard, kind: Kind, text: str) -> Difference:
    return Difference(
        node=books.node,
        kind=kind,
        card=card.uuid,
        sentence=f"{card_name(books, card.uuid)}: {text}; {LOOK_AT_EXTENDER}",
    )
