"""I4: units are free again only when the kubelet has released them. A rule over two pictures of one node."""

from collections.abc import Iterator, Mapping

from gpushare_core.audit.books import NodeBooks
from gpushare_core.audit.difference import Difference, Kind
from gpushare_core.audit.holdings import Holding, holdings, shares_of
from gpushare_core.audit.unit_map import UnitMap, unit_map
from gpushare_core.audit.wording import LEDGER, STATUS, card_name

Counts = Mapping[tuple[str, str], int]
"""UID of a pod and UUID of a card -> units."""


def early_releases(before: NodeBooks, after: NodeBooks) -> Iterator[Difference]:
    """Yields what a book counted ``before`` and does not ``after``, while the kubelet holds it all along."""
    units = unit_map(after.share_node) or unit_map(before.share_node)
    if units is None:
        return
    earlier = {(each.key, tuple(each.numbers)) for each in holdings(before)}
    for each in holdings(after):
        if each.listed and each.numbers and (each.key, tuple(each.numbers)) in earlier:
            yield from _released(before, after, each, units)


def _released(before: NodeBooks, after: NodeBooks, held: Holding, units: UnitMap) -> Iterator[Difference]:
    uid = held.key.pod.uid
    for card in shares_of(held.blocks(units)):
        for teller, count in (STATUS, _reported), (LEDGER, _booked):
            was, now = count(before, uid, card), count(after, uid, card)
            if was and now == 0:
                yield Difference(
                    node=after.node,
                    kind=Kind.RELEASED_EARLY,
                    card=card,
                    pod=str(held.key.pod),
                    uid=uid,
                    container=held.key.container,
                    sentence=f"{card_name(after, card)}: {teller} counted {was} units for {held.key.pod} and"
                    " counts none any more, while the kubelet has held them all along: another pod can be"
                    " given what is in use; report a bug: this must never happen",
                )


def _reported(books: NodeBooks, uid: str, card: str) -> int | None:
    """Returns None where the book was not read, or does not know the card."""
    found = books.share_node.card(card) if books.share_node else None
    return None if found is None else sum(each.units for each in found.holders if each.key.pod.uid == uid)


def _booked(books: NodeBooks, uid: str, card: str) -> int | None:
    found = books.ledger.card(card) if books.ledger else None
    return None if found is None else sum(each.units for each in found.shares if each.pod.uid == uid)
